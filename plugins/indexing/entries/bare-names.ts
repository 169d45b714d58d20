/**
 * Names without a prefix as people write them in questions. The platform's context leaves out terms that two vocabularies have
 * (`observes`); one that the index knows of a single vocabulary can only mean that. One it knows of several means what it meant to
 * the original index, or is refused.
 */
import type { Context } from '#ngsi-ld/context/context.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Prefixes of the platform's context whose names entities of the index have. */
const prefixes = ['sosa', 'ssn', 'iot-stream', 'iot-lite', 'qoi', 'geo', 'rdfs', 'schema'] as const

/** Types as the clients of the original index write them, where the contexts of platform and core read another. */
const meantTypes: ReadonlyMap<string, string> = new Map([
  // To the core it is a geometry, which no entity is.
  ['Point', 'geo:Point'],
  // So GraphQL calls them.
  ['IoTStream', 'iot-stream:IotStream'],
])

/** Attributes as the clients of the original index write them. */
const meantAttributes: ReadonlySet<string> = new Set([
  'sosa:observes',
  'iot-stream:generatedBy',
  'qoi:hasQuality',
])

/** Reads names of types. */
export const readingTypes =
  (context: Context): Context['expand'] =>
  (term) =>
    context.expand(meantTypes.get(term) ?? term)

/**
 * A context that reads names of attributes so; those of types are as before.
 * @param isKnown whether an entity of the index has an attribute of a canonical name.
 */
export function readingBareNames(context: Context, isKnown: (name: string) => boolean): Context['expand'] {
  return (term) => {
    const name = context.expand(term)
    // Only names of the default vocabulary are canonical without a colon.
    if (name !== term || name.includes(':') || isKnown(name)) return name
    const meant = prefixes.map((prefix) => `${prefix}:${name}`).filter((one) => isKnown(context.expand(one)))
    const [only, ...others] = meant
    if (only === undefined) return name
    const original = meant.find((one) => meantAttributes.has(one))
    if (others.length > 0 && original === undefined)
      throw badRequestData(`may be ${[only, ...others].join(' or ')}; write one of them`, name)
    return context.expand(original ?? only)
  }
}
