/**
 * Constructors for schema entries: a setting with a default, an optional setting, and a section. Title and
 * description are part of each entry.
 */
import * as v from 'valibot'
import * as kind from './value-kinds.ts'

/** Documentation of a setting, besides its kind and default. */
export interface About {
  readonly title: string
  readonly description: string
  /** The default in words, if it depends on other settings. */
  readonly defaultText?: string
  /** False if a change takes effect without a restart. */
  readonly restart?: false
}

/** Adds documentation to a schema; its input and output types stay the same. */
export const about = <S extends v.GenericSchema>(schema: S, { title, description, ...more }: About): S =>
  v.pipe(
    schema,
    v.title(title),
    v.description(description),
    v.metadata({ restart: true, ...more }),
  ) as unknown as S

/** A setting with a default. */
export const setting = <S extends v.GenericSchema, const D extends v.InferInput<S>>(
  schema: S,
  byDefault: D,
  words: About,
): v.OptionalSchema<S, D> => v.optional(about(schema, words), byDefault)

/** An optional setting; its description says what its absence means. */
export const maybe = <S extends v.GenericSchema>(schema: S, words: About): v.OptionalSchema<S, undefined> =>
  v.optional(about(schema, words), undefined)

/** A section; if it is absent, all its defaults apply. */
export const section = <E extends v.ObjectEntries>(title: string, entries: E) =>
  v.optional(v.pipe(kind.groupOf('a group of settings', entries), v.title(title)), {} as never)
