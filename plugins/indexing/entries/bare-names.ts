/**
 * Resolves names without a prefix in queries. The platform's context omits terms that two vocabularies define
 * (`observes`). A name that the index knows from one vocabulary means that one. A name from several means
 * what it meant in the original index, or is rejected.
 */
import type { Context } from '#ngsi-ld/context/context.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Prefixes of the platform's context whose vocabularies indexed entities use. */
const prefixes = ['sosa', 'ssn', 'iot-stream', 'iot-lite', 'qoi', 'geo', 'rdfs', 'schema'] as const

/**
 * Types as clients of the original index write them, where the platform and core contexts mean another type.
 */
const meantTypes: ReadonlyMap<string, string> = new Map([
  // In the core context `Point` is a geometry, and no entity has that type.
  ['Point', 'geo:Point'],
  // GraphQL clients use this spelling.
  ['IoTStream', 'iot-stream:IotStream'],
])

/** Attributes as the clients of the original index write them. */
const meantAttributes: ReadonlySet<string> = new Set([
  'sosa:observes',
  'iot-stream:generatedBy',
  'qoi:hasQuality',
])

/** Expands type names. */
export const readingTypes =
  (context: Context): Context['expand'] =>
  (term) =>
    context.expand(meantTypes.get(term) ?? term)

/**
 * Expands attribute names with the rules above; type names are not affected.
 * @param isKnown whether an indexed entity has an attribute with this canonical name.
 */
export function readingBareNames(context: Context, isKnown: (name: string) => boolean): Context['expand'] {
  return (term) => {
    const name = context.expand(term)
    // A canonical name without a colon belongs to the default vocabulary.
    if (name !== term || name.includes(':') || isKnown(name)) return name
    const meant = prefixes.map((prefix) => `${prefix}:${name}`).filter((one) => isKnown(context.expand(one)))
    const [only, ...others] = meant
    if (only === undefined) return name
    const original = meant.find((one) => meantAttributes.has(one))
    if (others.length > 0 && original === undefined)
      throw badRequestData(`is ambiguous: use ${[only, ...others].join(' or ')}`, name)
    return context.expand(original ?? only)
  }
}
