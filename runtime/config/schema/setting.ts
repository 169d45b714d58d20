/**
 * What the entries of the schema are made with: a setting with a default, one that may be left out, and a section. What
 * people read of a setting is part of it.
 */
import * as v from 'valibot'
import * as kind from './value-kinds.ts'

/** What a setting says about itself, beside its kind and default. */
export interface About {
  readonly title: string
  readonly description: string
  /** The default in words, where it depends on other settings. */
  readonly defaultText?: string
  /** False where a change takes effect at once. */
  readonly restart?: false
}

/** Words change neither what a schema takes nor what it gives, so its type stays. */
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

/** A setting that may be left out, and then means what its description says. */
export const maybe = <S extends v.GenericSchema>(schema: S, words: About): v.OptionalSchema<S, undefined> =>
  v.optional(about(schema, words), undefined)

/** A section; left out, all its defaults hold. */
export const section = <E extends v.ObjectEntries>(title: string, entries: E) =>
  v.optional(v.pipe(kind.groupOf('a group of settings', entries), v.title(title)), {} as never)
