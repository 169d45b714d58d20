/**
 * Resolves names of the platform's vocabulary in requests that specify no @context. Prefixes resolve in every
 * request. A short name resolves only in queries and subscriptions, and only while no entity uses the same
 * name in the default context. In writes a short name is always in the default context, as GS CIM 009
 * prescribes (4.4). In the profile `platform` all terms resolve.
 */
import { type Context, type QueryContext, remembered } from './context.ts'
import { canonicalOf } from './core-context.ts'
import document from './platform-context.json' with { type: 'json' }

const entries = Object.entries(document['@context'])
const prefixes: ReadonlyMap<string, string> = new Map(entries.filter(([, iri]) => /[#/:]$/.test(iri)))

const expandPrefix = (term: string): string | undefined => {
  const colon = term.indexOf(':', 1)
  const start = colon < 0 ? undefined : prefixes.get(term.slice(0, colon))
  return start === undefined || term.startsWith('//', colon + 1) ? undefined : start + term.slice(colon + 1)
}

const terms: ReadonlyMap<string, string> = new Map(
  entries
    .filter(([term]) => !prefixes.has(term))
    // GraphQL spells this one differently.
    .flatMap(([term, iri]) =>
      term === 'IotStream'
        ? [
            [term, iri],
            ['IoTStream', iri],
          ]
        : [[term, iri]],
    )
    .map(([term, iri]) => [term!, canonicalOf(expandPrefix(iri!) ?? iri!)]),
)
const platformNames: ReadonlySet<string> = new Set(terms.values())

/** Whether the platform's vocabulary has a term for a canonical name. */
export const isPlatformName = (name: string): boolean => platformNames.has(name)

/**
 * The context of requests that specify none: the core, plus the platform's prefixes or all its terms.
 * Responses contain full names, as with the core alone.
 */
export function createUnnamedContext(core: Context, names: 'prefixes' | 'terms'): Context {
  const expand = remembered((term) => {
    const name = names === 'terms' ? terms.get(term) : undefined
    if (name !== undefined) return name
    const iri = expandPrefix(term)
    return iri === undefined ? core.expand(term) : canonicalOf(iri)
  })
  const unnamed: Context = { ...core, key: `${core.key} ${names}`, expand }
  if (names === 'terms') return Object.freeze(unnamed)
  return Object.freeze({
    ...unnamed,
    forQueries: (isKnown) => queryContext(unnamed, isKnown),
  } satisfies Context)
}

/**
 * Resolves short names. Names of sub-attributes resolve only within attributes of the platform, because the
 * broker keeps no list of sub-attribute names.
 */
function queryContext(unnamed: Context, isKnown: (name: string) => boolean): QueryContext {
  const lookedUp = new Map<string, boolean>()
  return {
    ...unnamed,
    lookedUp,
    expand(term, within) {
      const name = unnamed.expand(term)
      const ours = terms.get(term)
      if (ours === undefined || (within !== undefined && !isPlatformName(within))) return name
      const known = lookedUp.get(name) ?? isKnown(name)
      lookedUp.set(name, known)
      return known ? name : ours
    },
  }
}

/**
 * The short names that a query context resolved, for a warning: pairs of the short name and its canonical
 * name.
 */
export const shortNamesIn = ({ lookedUp }: QueryContext): readonly (readonly [string, string])[] =>
  [...lookedUp].flatMap(([name, known]) => (known ? [] : [[name, terms.get(name)!] as const]))
