/**
 * Interned names: attribute and type names (core-compacted) have small numbers in the database. All of them are in
 * memory; a new one is written in the commit that first uses it. None is forgotten, so how many there may be is bounded.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Records } from '#store/tables/records.ts'
import type { Stage } from './stage.ts'

export function createNames(records: Records) {
  const numbers = new Map<string, number>()
  const texts = new Map<number, string>()
  // A full IRI by the part that a client without its context would write.
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
        `${numbers.size} names of attributes and types are known, and there is no room for another`,
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
    /** The number of a known name. */
    find: (text: string) => numbers.get(text),
    text: (i: number) => texts.get(i),
    isKnown: (text: string) => numbers.has(text),
    /** Another known name that ends like this one: a full IRI for a short name, or the same term of another vocabulary. */
    alike(text: string): string | undefined {
      const local = localPart(text)
      const found = iris.get(local) ?? (numbers.has(local) ? local : undefined)
      return found === text ? undefined : found
    },
    /** The number of a name, given one if it is new; throws `ngsi-ld.too-many-names` when there is no room for it. */
    intern: (stage: Stage, text: string): number => intern(stage, text, 1),
    /** The same of a combination that is left where something goes, for which there is as much room again: nothing stays for want of it. */
    internRest: (stage: Stage, text: string): number => intern(stage, text, 2),
  })
}

/** Combinations of names are JSON, which no IRI begins like. */
const isIri = (text: string): boolean => /^[a-z][a-z\d+.-]*:/i.test(text)

const localPart = (name: string): string =>
  name.slice(Math.max(...['#', '/', ':'].map((at) => name.lastIndexOf(at))) + 1)

export type Names = ReturnType<typeof createNames>
