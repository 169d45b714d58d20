/**
 * Sensor integration: devices and their fields as NGSI-LD entities. Pure values with core-compacted names;
 * nothing here reads or writes the store. Each entity is created once; an existing entity stays as people and
 * components left it. Only the list of hosted sensors of a Platform grows, and later declarations fill
 * attributes that nobody has filled. Metadata comes from declarations, never from guesses. Unknown values are
 * `NA` if the model has a word for that, and absent otherwise.
 */
import type { DeviceSettings, FieldSettings } from '#config/schema/settings-schema.ts'
import type { Json, Reading, TimeSource } from '#contract'
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
} from '#contract/vocabulary.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, type Fragment, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { type JsonObject, sameJson } from '#ngsi-ld/values/json.ts'
import { type SiteIds, siteIds } from './site-ids.ts'

/** How a source is reached, for readers of the entities. */
export interface SourceAddress {
  /** Address of the broker that delivered the frames, such as `mqtt://127.0.0.1:1883`. */
  readonly endpoint: string
  /** 'MQTT' or 'HTTP' */
  readonly interfaceType: string
  /** MQTT topic, or path of the URL. */
  readonly topic: string
  /** Media type. */
  readonly format: string
}

/** The first reading of a field, with the time of its observation. */
export interface FirstReading {
  readonly reading: Reading
  readonly observedAt: number
  readonly timeSource: TimeSource
}

/** A device as seen in a frame: the first reading of each relevant field. */
export interface DeviceSighting {
  readonly device: string
  readonly fields: readonly FirstReading[]
  readonly address: SourceAddress
  readonly declared?: DeviceSettings | undefined
}

export interface SiteSettings {
  readonly shareObservableProperty: boolean
}

/** An existing entity. */
export interface KnownEntity {
  readonly entity: Entity
  /** True when nobody has written the attribute since the entity was created. */
  isAsMade(name: string): boolean
}

/** The task of provisioning: entities to create, in order, and attributes to add to existing ones. */
export interface MissingParts {
  readonly create: readonly Entity[]
  readonly extend: readonly { readonly id: string; readonly fragment: Fragment }[]
}

/** The declaration of a device. Names come from devices, and `constructor` is a valid one. */
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

/** The ids of a field of a device, with its label when properties are shared. */
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

/** The missing parts of a sighting: entities, sensors that a Platform should host, declared metadata. */
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

/** The attribute that makes a Platform host the wanted sensors; undefined when it hosts them all. */
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

/** Attributes that a declaration may add to an existing entity. */
const declarable = [schemaName, 'location', qoi.updateinterval, qoi.min, qoi.max, qoi.regexp]

/** Declared attributes that the entity lacks, has as an `NA` that nobody wrote, or has only as learnt. */
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

/** The newest result of a stream: value, unit, time, and the clock of the time. */
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

/** Members of a result that the frame determines, its unit first; other members belong to other writers. */
const unitMembers = ['type', 'unitCode', schemaUnitText]
const formMembers = [...unitMembers, selvedgeTimeSource]

const isAlike = (members: readonly string[], a: AttributeInstance, b: AttributeInstance): boolean =>
  members.every((name) => sameJson(a[name], b[name]))

/** True when two results have the same unit and time source. */
export const hasSameForm = (a: AttributeInstance, b: AttributeInstance): boolean => isAlike(formMembers, a, b)

/** True when one result is earlier than another. */
export const isOlder = (result: AttributeInstance, than: AttributeInstance): boolean =>
  (dateTimeToMs(result.observedAt ?? '') ?? Number.NaN) < (dateTimeToMs(than.observedAt ?? '') ?? Number.NaN)

/**
 * True when a result may be observed in the stream of the previous one. A late result may differ in its time
 * source: only its unit must match, because it does not become current.
 */
export const mayFollow = (before: AttributeInstance, result: AttributeInstance): boolean =>
  hasSameForm(before, result) || (isOlder(result, before) && isAlike(unitMembers, before, result))

/** A result with the sub-attributes that people added to the previous one. */
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

/** True when a learnt interval may be written: none is known, or the known one was learnt. */
export function mayLearnInterval(sensor: Entity): boolean {
  const [known] = instancesOf(sensor, qoi.updateinterval)
  return known === undefined || known.value === notAvailable || isLearnt(known)
}

/** A Property without members of its own, usable as attribute and as sub-attribute. */
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

/** A shared property would have to list every sensor of the site, so it lists none. */
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

/** A sensor may send fractions after whole numbers, so every number is a float. */
function valueTypeOf(value: Json): string {
  if (typeof value === 'number') return 'float'
  return typeof value === 'string' || typeof value === 'boolean' ? typeof value : notAvailable
}

const placeOf = (declared: DeviceSettings | undefined): { readonly location?: AttributeInstance } =>
  declared?.location === undefined ? {} : { location: { type: 'GeoProperty', value: declared.location } }

const property = (value: Json): Property => ({ type: 'Property', value })

/** A single target as a string, several as a list (GS CIM 009 4.5.3). */
const relationship = (object: string | readonly string[]): AttributeInstance => ({
  type: 'Relationship',
  object: typeof object === 'string' ? object : object.length === 1 ? object[0]! : object,
})
