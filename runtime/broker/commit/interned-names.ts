/**
 * Interned names: the database stores attribute and type names (core-compacted) as small numbers. All names
 * are in memory; a new one is written in the commit that first uses it. Names are never removed, so their
 * number is bounded.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Records } from '#store/tables/records.ts'
import type { Stage } from './stage.ts'

export function createNames(records: Records) {
  const numbers = new Map<string, number>()
  const texts = new Map<number, string>()
  // Full IRIs, by the local part that a client without the matching @context would write.
  const iris = new Map<string, string>()
  let last = 0
  let characters = 0
  for (const { i, text } of records.names()) {
    if (isIri(text)) iris.set(localPart(text), text)
    numbers.set(text, i)
    texts.set(i, text)
    last = Math.max(last, i)
    characters += text.length
  }
  function intern(stage: Stage, text: string, share: number): number {
    const known = numbers.get(text)
    if (known !== undefined) return known
    const charactersMax = limits.namesCharactersMax.value * share
    if (numbers.size >= limits.namesMax.value * share || characters + text.length > charactersMax)
      throw new GatewayError(
        'ngsi-ld.too-many-names',
        `the maximum of attribute and type names is reached (${numbers.size} names)`,
      )
    const i = ++last
    characters += text.length
    numbers.set(text, i)
    texts.set(i, text)
    if (isIri(text)) iris.set(localPart(text), text)
    stage.write('name.insert', i, text)
    stage.undone(() => {
      characters -= text.length
      numbers.delete(text)
      texts.delete(i)
      if (iris.get(localPart(text)) === text) iris.delete(localPart(text))
    })
    return i
  }

  return Object.freeze({
    /** The number of an existing name. */
    find: (text: string) => numbers.get(text),
    text: (i: number) => texts.get(i),
    isKnown: (text: string) => numbers.has(text),
    /**
     * An existing name with the same local part: a full IRI for a short name, or the same term of another
     * vocabulary.
     */
    alike(text: string): string | undefined {
      const local = localPart(text)
      const found = iris.get(local) ?? (numbers.has(local) ? local : undefined)
      return found === text ? undefined : found
    },
    /** The number of a name, assigned if it is new; throws `ngsi-ld.too-many-names` at the ceiling. */
    intern: (stage: Stage, text: string): number => intern(stage, text, 1),
    /**
     * Interns the name combination that remains after a deletion. Its ceiling is twice as high, so that
     * a full name table never prevents a deletion.
     */
    internRest: (stage: Stage, text: string): number => intern(stage, text, 2),
  })
}

/** A combination of names is JSON text, which never looks like an IRI. */
const isIri = (text: string): boolean => /^[a-z][a-z\d+.-]*:/i.test(text)

const localPart = (name: string): string =>
  name.slice(Math.max(...['#', '/', ':'].map((at) => name.lastIndexOf(at))) + 1)

export type Names = ReturnType<typeof createNames>
