/**
 * Names of the platform's vocabulary in requests that name no @context. Their prefixes resolve everywhere. A short name
 * resolves only in queries and subscriptions, and only where the broker never had the default-context name, so that
 * whatever a client writes keeps the name that GS CIM 009 gives it (4.4). In the profile `platform` all terms resolve.
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
    // GraphQL spells one of them differently.
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
 * The context of requests that name none: the core, with the platform's prefixes or with all its terms. It shows names as
 * the core does, in full.
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

/** Resolves short names; those of sub-attributes only within attributes of the platform, since no broker lists them. */
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

/** What a query context read short names as, for a warning: pairs of the short name and the name it stands for. */
export const shortNamesIn = ({ lookedUp }: QueryContext): readonly (readonly [string, string])[] =>
  [...lookedUp].flatMap(([name, known]) => (known ? [] : [[name, terms.get(name)!] as const]))
