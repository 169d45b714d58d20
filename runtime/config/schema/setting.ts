/**
 * Constructors for schema entries: a setting with a default, an optional setting, and a section. The comment
 * of each entry is its documentation: "TITLE. DESCRIPTION". `npm run document` makes the reference from it.
 */
import * as v from 'valibot'
import * as kind from './value-kinds.ts'

/** A setting with a default; `defaultText` describes a default that depends on other settings. */
export const setting = <S extends v.GenericSchema, const D extends v.InferInput<S>>(
  schema: S,
  byDefault: D,
  defaultText?: string,
): v.OptionalSchema<S, D> =>
  v.optional(
    defaultText === undefined ? schema : (v.pipe(schema, v.metadata({ defaultText })) as unknown as S),
    byDefault,
  )

/** An optional setting; its comment says what its absence means. */
export const maybe = <S extends v.GenericSchema>(schema: S): v.OptionalSchema<S, undefined> =>
  v.optional(schema, undefined)

/** A section; if it is absent, all its defaults apply. */
export const section = <E extends v.ObjectEntries>(title: string, entries: E) =>
  v.optional(v.pipe(kind.groupOf('a group of settings', entries), v.title(title)), {} as never)
