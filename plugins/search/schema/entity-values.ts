/**
 * Reads entities as brokers return them (normalized, full IRIs or core context terms): attributes by IRI,
 * link targets, and values as GraphQL scalars. Pure and total: absent or unfitting data gives undefined.
 */

/** An entity as JSON. */
export type EntityJson = { readonly id: string; readonly type: string | readonly string[] } & Readonly<
  Record<string, unknown>
>

type Instance = Readonly<Record<string, unknown>>

const core = 'https://uri.etsi.org/ngsi-ld/'
const fallback = `${core}default-context/`

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Names of a member in a response compacted with the core context. */
const namesOf = (uri: string): readonly string[] =>
  uri.startsWith(core) ? [uri, uri.slice(uri.startsWith(fallback) ? fallback.length : core.length)] : [uri]

/** All instances of the first of these attributes that the entity has. */
export function instancesOf(
  owner: Readonly<Record<string, unknown>>,
  uris: readonly string[],
): readonly Instance[] {
  for (const name of uris.flatMap(namesOf)) {
    const found = Object.hasOwn(owner, name) ? owner[name] : undefined
    if (found !== undefined) return [found].flat().filter(isObject)
  }
  return []
}

/** The instance without datasetId, or else the first one. */
export function instanceOf(
  owner: Readonly<Record<string, unknown>>,
  uris: readonly string[],
): Instance | undefined {
  const all = instancesOf(owner, uris)
  return all.find((one) => one['datasetId'] === undefined) ?? all[0]
}

/** Target ids of relationships, without duplicates. */
export function targetsOf(
  owner: Readonly<Record<string, unknown>>,
  uris: readonly string[],
): readonly string[] {
  const targets = instancesOf(owner, uris).flatMap((one) => [one['object'] ?? one['value']].flat())
  return [...new Set(targets.filter((one): one is string => typeof one === 'string'))]
}

/** A member of an attribute: its value, or a named one (`observedAt`, the IRI of a sub-attribute). */
export function memberOf(instance: Instance, member: string | undefined): unknown {
  if (member === undefined) return plainValue(instance)
  const found = Object.hasOwn(instance, member) ? instance[member] : undefined
  return isObject(found) ? plainValue(found) : found
}

/** The plain value of any kind of attribute. */
function plainValue(instance: Instance): unknown {
  const { value, languageMap, vocab, json, object } = instance
  if (isObject(value) && Object.hasOwn(value, '@value')) return value['@value']
  if (isObject(languageMap)) return languageMap['en'] ?? Object.values(languageMap)[0]
  return value ?? vocab ?? json ?? object
}

/** Converts to a GraphQL scalar. NA, which the platform writes for "unknown", is not a number. */
export function toScalar(value: unknown, scalar: string): unknown {
  if (value === undefined || value === null) return null
  if (scalar === 'String' || scalar === 'ID') return typeof value === 'string' ? value : JSON.stringify(value)
  if (scalar === 'Boolean') return toBoolean(value)
  if (scalar !== 'Float' && scalar !== 'Int') return value
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof number !== 'number' || !Number.isFinite(number)) return null
  return scalar === 'Float' || Number.isInteger(number) ? number : null
}

function toBoolean(value: unknown): boolean | null {
  if (typeof value === 'boolean') return value
  if (value === 1 || value === 'true') return true
  return value === 0 || value === 'false' ? false : null
}

/** A geometry as a GeoLocation. */
export function toPlace(instance: Instance | undefined): object | null {
  const geometry = instance?.['value']
  if (!isObject(geometry)) return null
  const { type, coordinates } = geometry
  const [lon, lat] = type === 'Point' && Array.isArray(coordinates) ? (coordinates as unknown[]) : []
  return { type, coordinates, lon: toScalar(lon, 'Float'), lat: toScalar(lat, 'Float') }
}

/** The type as an IRI; if there are several, the first. */
export function typeOf(entity: EntityJson): string {
  const [first = ''] = [entity.type].flat()
  return /^[a-z][a-z0-9+.-]*:/i.test(first) ? first : `${fallback}${first}`
}
