/**
 * Compiled contexts against the JSON-LD library as oracle: names, types and whole normalized entities expand
 * to the same IRIs and compact to the same terms under generated contexts of the subset that NGSI-LD uses.
 * Outside that subset the gateway differs on purpose and the tests generate nothing: terms for IRIs of the
 * core, coerced terms for one IRI, prefixes that no context defines.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext } from '#ngsi-ld/context/context.ts'
import { coreContextUrl, coreTerms, toIri } from '#ngsi-ld/context/core-context.ts'
import { parseEntity } from '#ngsi-ld/entity/entity.ts'
import { renderEntity } from '#ngsi-ld/representation/representation.ts'
import { isList, type JsonObject } from '#ngsi-ld/values/json.ts'
import { runs } from '#test/kit/runs.ts'

interface Library {
  expand(document: Json, options: object): Promise<Record<string, Json>[]>
  compact(document: Json, context: Json, options: object): Promise<Record<string, Json>>
}

const library = createRequire(import.meta.url)('jsonld') as Library
const coreUrl = coreContextUrl()
const core = JSON.parse(
  readFileSync(new URL('../../runtime/ngsi-ld/context/core-context/v1.9.json', import.meta.url), 'utf8'),
) as JsonObject

/** The core context alone does not abbreviate by its prefixes: expands those in the library's result. */
function shown(value: Json, under: Context): Json {
  if (!under.isCore) return value
  const spelledOut = (text: string): string =>
    text.replace(/^(ngsi-ld|geojson):/, (_, name: string) => coreTerms.get(name)!)
  if (isList(value)) return value.map((item) => shown(item, under))
  if (typeof value === 'string') return spelledOut(value)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [spelledOut(key), shown(one, under)]))
}

const documentLoader = async (url: string) => ({
  documentUrl: url,
  document: url === coreUrl ? core : { '@context': {} },
})
const options = { documentLoader }

const letters = ['a', 'b', 'c', 'D', 'E']
const word = fc
  .string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 4 })
  .map((text) => `w${text}`)
const namespace = fc
  .tuple(
    fc.constantFrom('http://a.org/', 'http://a.org/b/', 'http://a.org/b#', 'https://c.net/x?y='),
    fc.constantFrom('', 'v1/', 'v2#'),
  )
  .map((parts) => parts.join(''))
  .filter((iri) => /[/#]$/.test(iri))
const prefix = fc.constantFrom('p', 'q', 'sosa')

/**
 * Prefixes first, then terms: as IRIs, compact IRIs, aliases of each other, plain or expanded definitions.
 */
const contextObject = fc
  .record({
    prefixes: fc.dictionary(prefix, namespace, { maxKeys: 3 }),
    terms: fc.dictionary(word, fc.tuple(namespace, word), { maxKeys: 6 }),
    compactTerms: fc.dictionary(word, fc.tuple(prefix, word), { maxKeys: 4 }),
    aliases: fc.dictionary(
      word.map((name) => `${name}#1`),
      fc.nat(),
      { maxKeys: 2 },
    ),
    expanded: fc.boolean(),
  })
  .map(({ prefixes, terms, compactTerms, aliases, expanded }) => {
    const context: Record<string, Json> = { ...prefixes }
    for (const [term, [start, end]] of Object.entries(terms)) context[term] = start + end
    for (const [term, [name, end]] of Object.entries(compactTerms)) {
      if (Object.hasOwn(prefixes, name))
        context[term] = expanded ? { '@id': `${name}:${end}` } : `${name}:${end}`
    }
    const known = Object.keys(context).filter((name) => name.startsWith('w'))
    for (const [alias, index] of Object.entries(aliases)) {
      if (known.length > 0) context[alias] = known[index % known.length]!
    }
    return context
  })

const localContext: fc.Arbitrary<Json[]> = fc.array(contextObject, { maxLength: 2 })

/** Names that a client might use under a context: its terms and prefixes, IRIs, and undefined words. */
const nameUnder = (contexts: readonly Json[]): fc.Arbitrary<string> => {
  const known = contexts.flatMap((one) => Object.keys(one as object))
  const terms = known.filter((term) => term.startsWith('w'))
  const prefixes = known.filter((term) => !term.startsWith('w'))
  return fc.oneof(
    word,
    fc.tuple(namespace, word).map((parts) => parts.join('')),
    fc.constantFrom('location', 'scope', 'title', 'https://uri.etsi.org/ngsi-ld/location', ...terms),
    fc.tuple(fc.constantFrom('geojson', ...prefixes), word).map((parts) => parts.join(':')),
  )
}

const local = (contexts: readonly Json[]): Context =>
  compileContext([...contexts], () => undefined) as Context
const usual = { numRuns: runs(200) }

describe('names', () => {
  it('expand to the same IRI', async () => {
    const input = localContext.chain((contexts) =>
      fc.record({ contexts: fc.constant(contexts), name: nameUnder(contexts) }),
    )
    await fc.assert(
      fc.asyncProperty(input, async ({ contexts, name }) => {
        const document = { '@context': [...contexts, coreUrl], id: 'urn:e', type: name, [name]: 'x' } as Json
        const [expanded] = await library.expand(document, options)
        const iri = toIri(local(contexts).expand(name))
        expect(expanded?.['@type']).toEqual([iri])
        expect(Object.keys(expanded!).filter((key) => !key.startsWith('@'))).toEqual([iri])
      }),
      usual,
    )
  })

  it('compact to the same term', async () => {
    const input = localContext.chain((contexts) =>
      fc.record({ contexts: fc.constant(contexts), other: localContext, name: nameUnder(contexts) }),
    )
    await fc.assert(
      fc.asyncProperty(input, async ({ contexts, other, name }) => {
        const canonical = local(contexts).expand(name)
        const expanded = {
          '@id': 'urn:e',
          [toIri(canonical)]: [{ '@id': 'urn:x' }],
          '@type': [toIri(canonical)],
        }
        const compacted = shown(
          await library.compact([expanded], [...other, coreUrl], options),
          local(other),
        ) as JsonObject
        const term = local(other).compact(canonical)
        const keys = Object.keys(compacted).filter((key) => !['id', 'type', '@context'].includes(key))
        expect(keys).toEqual([term])
        expect(compacted['type']).toBe(term)
      }),
      usual,
    )
  })

  it('return to their original form, for any context', () => {
    fc.assert(
      fc.property(
        localContext,
        localContext,
        fc.oneof(word, fc.webUrl(), fc.string(), fc.constantFrom(...coreTerms.keys())),
        (one, two, name) => {
          const canonical = local(one).expand(name)
          fc.pre(!/^[a-z]+:(?!\/\/)/.test(canonical))
          expect(local(two).expand(local(two).compact(canonical))).toBe(canonical)
        },
      ),
      { numRuns: runs(1000) },
    )
  })
})

describe('normalized entities', () => {
  const value = fc.oneof(
    fc.integer(),
    fc.boolean(),
    fc.string({ minLength: 1, maxLength: 5 }).map((text) => `v${text}`),
  )
  const attribute = (name: fc.Arbitrary<string>): fc.Arbitrary<Json> =>
    fc.oneof(
      fc.record({ type: fc.constant('Property'), value }),
      fc.record({
        type: fc.constant('Property'),
        value,
        unitCode: fc.constant('CEL'),
        observedAt: fc.constant('2024-01-01T00:00:00Z'),
      }),
      fc.record({ type: fc.constant('Relationship'), object: fc.constant('urn:ngsi-ld:x:1') }),
      fc.record({ name, value }).map((sub) => ({
        type: 'Property',
        value: sub.value,
        [sub.name]: { type: 'Property', value: sub.value },
      })),
    )
  const input = localContext.chain((contexts) => {
    const name = nameUnder(contexts).filter((text) => !/^(?:scope|title|(?:.*\/)?location)$/.test(text))
    return fc.record({
      contexts: fc.constant(contexts),
      other: localContext,
      type: name,
      attributes: fc.dictionary(name, attribute(name), { minKeys: 1, maxKeys: 5 }),
    })
  })

  it('are expanded under one context and compacted under another like in the library', async () => {
    await fc.assert(
      fc.asyncProperty(input, async ({ contexts, other, type, attributes }) => {
        const [from, to] = [local(contexts), local(other)]
        fc.pre(
          new Set(Object.keys(attributes).map((name) => from.expand(name))).size ===
            Object.keys(attributes).length,
        )
        const body = { id: 'urn:ngsi-ld:T:1', type, ...attributes }
        const expanded = await library.expand({ ...body, '@context': [...contexts, coreUrl] }, options)
        const { '@context': _, ...compacted } = await library.compact(expanded, [...other, coreUrl], options)
        const entity = parseEntity(body, from)
        expect(renderEntity(entity, undefined, { context: to, format: 'normalized' })).toEqual(
          shown(compacted, to),
        )
      }),
      usual,
    )
  })
})
