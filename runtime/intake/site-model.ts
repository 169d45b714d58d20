/**
 * Sensor integration: what a device and its fields are as NGSI-LD entities. Pure values with core-compacted names;
 * nothing here reads or writes the store. What is made is made once: an entity that exists is left as people and
 * components made it. Only the list of hosted sensors of a Platform grows, and what is declared later fills gaps that
 * nobody has filled. Metadata comes from declarations, never from guesses; what is not known is `NA` where the model
 * has a word for that, and absent elsewhere.
 */
import type { DeviceSettings, FieldSettings } from '#config/schema/settings-schema.ts'
import type { Json, Reading, TimeSource } from '#contract'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, type Fragment, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type JsonObject, sameJson } from '#ngsi-ld/values/json.ts'
import { type SiteIds, siteIds } from './site-ids.ts'
import {
  dctermsFormat,
  iotLite,
  iotStream,
  notAvailable,
  qoi,
  rdfsLabel,
  schemaName,
  schemaUnitText,
  selvedgeBasis,
  selvedgeTimeSource,
  selvedgeTopic,
  sosa,
} from './vocabulary.ts'

/** How a source is reached, for everybody who reads the entities. */
export interface SourceAddress {
  /** Of the broker the frames came by, such as `mqtt://127.0.0.1:1883`. */
  readonly endpoint: string
  /** 'MQTT' or 'HTTP' */
  readonly interfaceType: string
  /** MQTT topic, or path of the URL. */
  readonly topic: string
  /** Media type. */
  readonly format: string
}

/** A field as first seen, with the time of its observation. */
export interface FirstReading {
  readonly reading: Reading
  readonly observedAt: number
  readonly timeSource: TimeSource
}

/** A device as a frame shows it: the first reading of each of its fields that matter. */
export interface DeviceSighting {
  readonly device: string
  readonly fields: readonly FirstReading[]
  readonly address: SourceAddress
  readonly declared?: DeviceSettings | undefined
}

export interface SiteSettings {
  readonly shareObservableProperty: boolean
}

/** An entity that exists. */
export interface KnownEntity {
  readonly entity: Entity
  /** Whether nobody has written an attribute since the entity was made. */
  isAsMade(name: string): boolean
}

/** What provisioning has to do: entities to create, in order, and attributes to add to some that exist. */
export interface MissingParts {
  readonly create: readonly Entity[]
  readonly extend: readonly { readonly id: string; readonly fragment: Fragment }[]
}

/** What is declared of a device. Names come from devices: `constructor` is one as any other. */
export function declaredDevice(
  devices: Readonly<Record<string, DeviceSettings>>,
  device: string,
): DeviceSettings | undefined {
  return Object.hasOwn(devices, device) ? devices[device] : undefined
}

export function declaredField(
  declared: DeviceSettings | undefined,
  field: string,
): FieldSettings | undefined {
  return declared !== undefined && Object.hasOwn(declared.fields, field) ? declared.fields[field] : undefined
}

/** The ids of a field of a device, with its label where properties are shared. */
export function idsOf(
  reading: Reading,
  topic: string,
  declared: FieldSettings | undefined,
  settings: SiteSettings,
): SiteIds {
  const { device, field } = reading
  const sharedLabel = settings.shareObservableProperty ? labelOf(field, declared) : undefined
  return siteIds({ device, field, topic, sharedLabel })
}

/** All entities of a sighting, each once: Platform, sensors, streams, properties, observations, services. */
export function siteEntities(sighting: DeviceSighting, settings: SiteSettings): readonly Entity[] {
  const { address, declared } = sighting
  const fields = sighting.fields.map((first): FieldFacts => {
    const metadata = declaredField(declared, first.reading.field)
    return { first, metadata, device: declared, ids: idsOf(first.reading, address.topic, metadata, settings) }
  })
  const [one] = fields
  if (one === undefined) return []
  const sensors = fields.map(({ ids }) => ids.sensor)
  const entities = [
    platformEntity(one.ids.platform, [...new Set(sensors)], declared),
    ...fields.map(sensorEntity),
    ...fields.map(streamEntity),
    ...fields.map((field) => propertyEntity(field, settings)),
    ...fields.map(observationEntity),
    serviceEntity(one.ids.service, address),
  ]
  const seen = new Set<string>()
  return entities.filter(({ id }) => !seen.has(id) && seen.add(id))
}

/** What of a sighting does not exist yet: entities, sensors that a Platform has to host, declared metadata. */
export function missingParts(
  find: (id: string) => KnownEntity | undefined,
  sighting: DeviceSighting,
  settings: SiteSettings,
): MissingParts {
  const create: Entity[] = []
  const extend: { id: string; fragment: Fragment }[] = []
  for (const wanted of siteEntities(sighting, settings)) {
    const known = find(wanted.id)
    if (known === undefined) {
      create.push(wanted)
      continue
    }
    const fragment = { ...hostingFragment(known.entity, wanted), ...gapsOf(known, wanted) }
    if (Object.keys(fragment).length > 0) extend.push({ id: wanted.id, fragment })
  }
  return { create, extend }
}

/** The attribute that makes a Platform host the sensors it should; undefined when it hosts them all. */
export function hostingFragment(platform: Entity, wanted: Entity): Fragment | undefined {
  const instances = instancesOf(platform, sosa.hosts)
  const hosted = new Set(instances.flatMap(objectsOf))
  const added = instancesOf(wanted, sosa.hosts)
    .flatMap(objectsOf)
    .filter((sensor) => !hosted.has(sensor))
  if (added.length === 0) return undefined
  const own = instances.filter(({ datasetId }) => datasetId === undefined).flatMap(objectsOf)
  return { [sosa.hosts]: relationship([...own, ...added]) }
}

/** Attributes that a declaration may add to an entity that exists. */
const declarable = [schemaName, 'location', qoi.updateinterval, qoi.min, qoi.max, qoi.regexp]

/** What is declared where the entity has nothing, an `NA` that nobody wrote, or what was only learnt. */
function gapsOf({ entity, isAsMade }: KnownEntity, wanted: Entity): Fragment {
  const isGap = (name: string): boolean => {
    const [declared] = instancesOf(wanted, name)
    if (declared === undefined || declared.value === notAvailable) return false
    const [present] = instancesOf(entity, name)
    return present === undefined || isLearnt(present) || (present.value === notAvailable && isAsMade(name))
  }
  return Object.fromEntries(declarable.filter(isGap).map((name) => [name, wanted[name]!]))
}

const isLearnt = (interval: AttributeInstance): boolean =>
  (interval[selvedgeBasis] as { readonly value?: Json } | undefined)?.value === 'learnt'

const objectsOf = ({ object }: AttributeInstance): string[] =>
  [object].flat().filter((one): one is string => typeof one === 'string')

/** The newest result of a stream: value, unit, time, and whose clock the time is by. */
export function simpleResult(
  { reading, observedAt, timeSource }: FirstReading,
  declared?: FieldSettings | undefined,
): AttributeInstance {
  const unitCode = reading.unitCode ?? declared?.unitCode
  const unitText = unitCode === undefined ? reading.unitText : undefined
  return {
    type: 'Property',
    value: reading.value,
    ...(unitCode !== undefined && { unitCode }),
    observedAt: msToDateTime(observedAt),
    ...(unitText !== undefined && { [schemaUnitText]: property(unitText) }),
    [selvedgeTimeSource]: property(timeSource),
  }
}

/** Members of a result that a frame decides, its unit first; whatever else somebody left there is not ours. */
const unitMembers = ['type', 'unitCode', schemaUnitText]
const formMembers = [...unitMembers, selvedgeTimeSource]

const isAlike = (members: readonly string[], a: AttributeInstance, b: AttributeInstance): boolean =>
  members.every((name) => sameJson(a[name], b[name]))

/** Whether two results have the same unit and time source. */
export const hasSameForm = (a: AttributeInstance, b: AttributeInstance): boolean => isAlike(formMembers, a, b)

/** Whether the time of one result is before that of another. */
export const isOlder = (result: AttributeInstance, than: AttributeInstance): boolean =>
  (dateTimeToMs(result.observedAt ?? '') ?? Number.NaN) < (dateTimeToMs(than.observedAt ?? '') ?? Number.NaN)

/**
 * Whether a result may be observed in the stream of the one before. A late one may differ in whose clock it is by:
 * its unit must be right, and nothing becomes current.
 */
export const mayFollow = (before: AttributeInstance, result: AttributeInstance): boolean =>
  hasSameForm(before, result) || (isOlder(result, before) && isAlike(unitMembers, before, result))

/** A result in its own form, with the sub-attributes that people put on the one before. */
export function withOthersOf(before: AttributeInstance, result: AttributeInstance): AttributeInstance {
  if (before.type !== result.type) return result
  const others = Object.entries(before).filter(
    ([name]) => !formMembers.includes(name) && name !== 'value' && name !== 'observedAt',
  )
  return { ...(Object.fromEntries(others) as JsonObject), ...result }
}

/** sosa:resultTime, always the time of the result. */
export const resultTime = (observedAt: number): Property => property(msToDateTime(observedAt))

/** Attributes that state a learnt update interval (seconds), marked as learnt. */
export const learntInterval = (seconds: number): Fragment => ({
  [qoi.updateinterval]: updateInterval(seconds, 'learnt'),
})

/** Whether a learnt interval may be written: nothing is known yet, or what is known was learnt. */
export function mayLearnInterval(sensor: Entity): boolean {
  const [known] = instancesOf(sensor, qoi.updateinterval)
  return known === undefined || known.value === notAvailable || isLearnt(known)
}

/** A Property without members of its own: an attribute as well as a sub-attribute. */
type Property = { readonly type: 'Property'; readonly value: Json }

interface FieldFacts {
  readonly first: FirstReading
  readonly metadata: FieldSettings | undefined
  readonly device: DeviceSettings | undefined
  readonly ids: SiteIds
}

function platformEntity(
  id: string,
  sensors: readonly string[],
  declared: DeviceSettings | undefined,
): Entity {
  return {
    id,
    type: sosa.Platform,
    [sosa.hosts]: relationship(sensors),
    ...(declared?.name !== undefined && { [schemaName]: property(declared.name) }),
    ...placeOf(declared),
  }
}

function sensorEntity({ first, metadata, device, ids }: FieldFacts): Entity {
  const seconds = metadata?.updateInterval ?? first.reading.updateIntervalSeconds
  return {
    id: ids.sensor,
    type: sosa.Sensor,
    [sosa.isHostedBy]: relationship(ids.platform),
    [sosa.observes]: relationship(ids.property),
    [sosa.madeObservation]: relationship(ids.observation),
    [qoi.updateinterval]:
      seconds === undefined ? property(notAvailable) : updateInterval(seconds, 'declared'),
    [qoi.valuetype]: property(metadata?.valueType ?? valueTypeOf(first.reading.value)),
    [qoi.min]: property(metadata?.min ?? notAvailable),
    [qoi.max]: property(metadata?.max ?? notAvailable),
    ...(metadata?.regexp !== undefined && { [qoi.regexp]: property(metadata.regexp) }),
    ...placeOf(device),
  }
}

function streamEntity({ device, ids }: FieldFacts): Entity {
  return {
    id: ids.stream,
    type: iotStream.IotStream,
    [iotStream.generatedBy]: relationship(ids.sensor),
    [iotStream.observes]: relationship(ids.property),
    [iotStream.providedBy]: relationship(ids.service),
    [sosa.observes]: relationship(ids.property),
    ...placeOf(device),
  }
}

/** A shared property would have to list every sensor of the site; it lists none. */
function propertyEntity({ first, metadata, ids }: FieldFacts, settings: SiteSettings): Entity {
  return {
    id: ids.property,
    type: sosa.ObservableProperty,
    [rdfsLabel]: property(labelOf(first.reading.field, metadata)),
    ...(!settings.shareObservableProperty && { [sosa.isObservedBy]: relationship(ids.sensor) }),
  }
}

function observationEntity({ first, metadata, ids }: FieldFacts): Entity {
  return {
    id: ids.observation,
    type: iotStream.StreamObservation,
    [iotStream.belongsTo]: relationship(ids.stream),
    [sosa.madeBySensor]: relationship(ids.sensor),
    [sosa.observedProperty]: relationship(ids.property),
    [sosa.hasSimpleResult]: simpleResult(first, metadata),
    [sosa.resultTime]: resultTime(first.observedAt),
  }
}

function serviceEntity(id: string, { endpoint, interfaceType, topic, format }: SourceAddress): Entity {
  return {
    id,
    type: iotLite.Service,
    [iotLite.endpoint]: property(endpoint),
    [iotLite.interfaceType]: property(interfaceType),
    [selvedgeTopic]: property(topic),
    [dctermsFormat]: property(format),
  }
}

/** The matching key of the platform, in lower case. */
const labelOf = (field: string, declared: FieldSettings | undefined): string =>
  (declared?.label ?? field).toLowerCase()

const updateInterval = (seconds: number, basis: 'declared' | 'learnt'): AttributeInstance => ({
  type: 'Property',
  value: seconds,
  [qoi.unit]: property('seconds'),
  [selvedgeBasis]: property(basis),
})

/** A whole number now may be followed by a fraction, so every number is a float. */
function valueTypeOf(value: Json): string {
  if (typeof value === 'number') return 'float'
  return typeof value === 'string' || typeof value === 'boolean' ? typeof value : notAvailable
}

const placeOf = (declared: DeviceSettings | undefined): { readonly location?: AttributeInstance } =>
  declared?.location === undefined ? {} : { location: { type: 'GeoProperty', value: declared.location } }

const property = (value: Json): Property => ({ type: 'Property', value })

/** One target as such, several as a list (GS CIM 009 4.5.3). */
const relationship = (object: string | readonly string[]): AttributeInstance => ({
  type: 'Relationship',
  object: typeof object === 'string' ? object : object.length === 1 ? object[0]! : object,
})
