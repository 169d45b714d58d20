/**
 * Names of the platform's vocabulary in requests that name no @context. Their prefixes resolve everywhere. A short type
 * name resolves only in queries, and only where no entity ever had the default-context type of that name, so that
 * whatever a client writes keeps the name that GS CIM 009 gives it (4.4). In the profile `platform` all terms resolve.
 */
import { type Context, remembered } from './context.ts'
import { canonicalOf } from './core-context.ts'
import document from './platform-context.json' with { type: 'json' }
import type { TypeSelection } from './selection.ts'

const entries = Object.entries(document['@context'])
const prefixes: ReadonlyMap<string, string> = new Map(entries.filter(([, iri]) => /[#/:]$/.test(iri)))

const expandPrefix = (term: string): string | undefined => {
  const colon = term.indexOf(':', 1)
  const start = colon < 0 ? undefined : prefixes.get(term.slice(0, colon))
  return start === undefined || term.startsWith('//', colon + 1) ? undefined : start + term.slice(colon + 1)
}

const terms: ReadonlyMap<string, string> = new Map(
  entries.filter(([term]) => !prefixes.has(term)).map(([term, iri]) => [term, expandPrefix(iri) ?? iri]),
)

/** Terms of types; GraphQL spells one of them differently. */
const types: ReadonlyMap<string, string> = new Map(
  [...terms, ['IoTStream', terms.get('IotStream')!] as const].filter(([term]) => /^[A-Z]/.test(term)),
)

/**
 * The context of requests that name none: the core, with the platform's prefixes or with all its terms. It shows names as
 * the core does, in full.
 */
export function createUnnamedContext(core: Context, names: 'prefixes' | 'terms'): Context {
  const expand = (term: string): string => {
    const iri = (names === 'terms' ? (terms.get(term) ?? types.get(term)) : undefined) ?? expandPrefix(term)
    return iri === undefined ? core.expand(term) : canonicalOf(iri)
  }
  const shortTypes = names === 'prefixes' ? { shortTypes: types } : {}
  return Object.freeze({ ...core, key: `${core.key} ${names}`, expand: remembered(expand), ...shortTypes })
}

/** The selection with each short type name that no entity ever had replaced by the platform's type of that name. */
export function resolveShortTypes(
  selection: TypeSelection,
  shortTypes: ReadonlyMap<string, string>,
  isKnown: (name: string) => boolean,
): TypeSelection {
  if (selection.kind === 'any') return selection
  if (selection.kind === 'type') {
    const iri = shortTypes.get(selection.name)
    return iri === undefined || isKnown(selection.name) ? selection : { kind: 'type', name: iri }
  }
  return {
    kind: selection.kind,
    parts: selection.parts.map((part) => resolveShortTypes(part, shortTypes, isKnown)),
  }
}
