/**
 * Renders one entity for a notification [NGSI-LD 5.8.6]: the entity in the form that the subscription
 * requests, deletions as NGSI-LD Null, and with showChanges the previous values. Pure; it does not depend on
 * the entity's current state.
 */
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { AttributeChange } from '#ngsi-ld/entity/entity-draft.ts'
import { languageRanges } from '#ngsi-ld/entity/language.ts'
import { type Joining, linkedOf, projected, renderInline } from '#ngsi-ld/query/join.ts'
import type { Follow } from '#ngsi-ld/query/query-match.ts'
import {
  type Amendment,
  createAmendment,
  minorOf,
  preferredMinor,
} from '#ngsi-ld/representation/conformance.ts'
import { toFeature } from '#ngsi-ld/representation/geojson.ts'
import { projectionOf } from '#ngsi-ld/representation/projection.ts'
import {
  type RenderOptions,
  renderEntity,
  renderInstance,
  type SystemTimes,
} from '#ngsi-ld/representation/representation.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { ngsiLdNull } from '#ngsi-ld/values/names.ts'
import type { NotificationFormat, Subscription } from './subscription.ts'

/** Everything needed to report a change of an entity, independent of later changes. */
export interface EntityReport {
  /** The entity after the change; only id and type if it was deleted. */
  readonly entity: Entity
  /** Includes the times of deleted attributes. */
  readonly times: SystemTimes
  /** The deleted instances and, if previous values are reported, the replaced ones. */
  readonly changes?: readonly ReportedChange[] | undefined
  /** Time of the change, ms; also the time of its deletions. */
  readonly at: number
  /** The entity itself was deleted. */
  readonly isDeleted?: boolean | undefined
}

/** The change of an existing instance: it was deleted or replaced. */
export interface ReportedChange {
  readonly name: string
  readonly before: AttributeInstance
  readonly isDeleted: boolean
}

/** The changes that a notification may have to report. */
export function reportableChanges(changes: readonly AttributeChange[], all: boolean): ReportedChange[] {
  return changes.flatMap(({ name, before, after }) =>
    before !== undefined && (all || after === undefined)
      ? [{ name, before, isDeleted: after === undefined }]
      : [],
  )
}

export interface NotificationDataOptions {
  readonly context: Context
  /** Value of the member `@context` of each item. */
  readonly atContext?: Json | undefined
  /** Finds linked entities. */
  readonly follow: Follow
}

/**
 * The items of `data` that report this change to the subscriber: the entity, and its linked entities if they
 * are joined.
 */
export function notificationItems(
  subscription: Subscription,
  change: EntityReport,
  options: NotificationDataOptions,
): JsonObject[] {
  const rendering = renderingOf(subscription, options)
  const amendment = amendmentFor(subscription)
  const report = amendment === undefined ? change : amended(change, amendment, options.context)
  const { entity, times } = report
  const source = { entity: () => entity, times: () => times }
  const joining = joiningOf(subscription, following(options, amendment))
  const inline = joining?.mode === 'inline' ? joining : undefined
  const whole =
    inline === undefined ? renderEntity(entity, times, rendering) : renderInline(source, rendering, inline)
  const rendered = [featured(subscription, entity, withChanges(subscription, report, { whole, rendering }))]
  if (joining?.mode !== 'flat') return rendered
  for (const { source: linked, options: shown } of linkedOf([source], rendering, joining))
    rendered.push(
      featured(subscription, linked.entity(), renderEntity(linked.entity(), linked.times(), shown)),
    )
  return rendered
}

/** Converts entities for a receiver that supports only an earlier version (1.9, 4.3.6.8). */
function amendmentFor({ ngsildConformance, notification }: Subscription): Amendment | undefined {
  const { receiverInfo = [] } = notification.endpoint
  const prefer = receiverInfo.find(({ key }) => key.toLowerCase() === 'prefer')?.value
  const minor = ngsildConformance === undefined ? preferredMinor(prefer) : minorOf(ngsildConformance)
  return minor === undefined ? undefined : createAmendment(minor)
}

function amended(report: EntityReport, amendment: Amendment, { compact }: Context): EntityReport {
  return {
    ...report,
    entity: amendment.entity(report.entity, compact),
    changes: report.changes?.map((one) => ({ ...one, before: amendment.instance(one.before, compact) })),
  }
}

function following({ follow, context }: NotificationDataOptions, amendment: Amendment | undefined): Follow {
  if (amendment === undefined) return follow
  return (id, types) => {
    const found = follow(id, types)
    return found && { ...found, entity: () => amendment.entity(found.entity(), context.compact) }
  }
}

/**
 * The member `data` from items, all as JSON text: a list, or a collection if the subscriber accepts GeoJSON.
 */
export function notificationData(
  subscription: Subscription,
  items: readonly string[],
  atContext?: Json,
): string {
  const list = `[${items.join(',')}]`
  if (subscription.notification.endpoint.accept !== geoJson) return list
  const context = atContext === undefined ? '' : `,"@context":${JSON.stringify(atContext)}`
  return `{"type":"FeatureCollection","features":${list}${context}}`
}

const geoJson = 'application/geo+json'

function featured(subscription: Subscription, entity: Entity, rendered: JsonObject): JsonObject {
  const { notification, datasetId } = subscription
  if (notification.endpoint.accept !== geoJson) return rendered
  return toFeature(entity, rendered, {
    geometryProperty: 'location',
    datasetId: datasetId === undefined ? undefined : new Set(datasetId),
  })
}

function joiningOf({ notification }: Subscription, follow: Follow): Joining | undefined {
  const { join, joinLevel = 1 } = notification
  if (join === undefined || join === '@none') return undefined
  return { mode: join, levels: joinLevel, containedBy: new Set(), follow }
}

/** The rendered entity, plus deletions and previous values. */
function withChanges(
  subscription: Subscription,
  report: EntityReport,
  { whole, rendering }: { readonly whole: JsonObject; readonly rendering: RenderOptions },
): JsonObject {
  const { entity, isDeleted } = report
  const rendered: Record<string, Json> = { ...whole }
  const stamp = msToDateTime(report.at)
  if (isDeleted === true) rendered['deletedAt'] = stamp
  for (const [name, changes] of changesByName(subscription, report, rendering)) {
    const instances = instancesOf(entity, name).filter(({ datasetId }) => shows(rendering, datasetId))
    const parts = [
      ...instances.map((instance) => renderReported(name, instance, { report, rendering, subscription })),
      ...changes
        .filter((change) => change.isDeleted)
        .map(({ before }) => renderDeletion(name, before, { report, rendering, subscription })),
    ]
    if (parts.length > 0) rendered[rendering.context.compact(name)] = joined(parts, rendering)
  }
  return rendered
}

/** Rendering options from a subscription. */
function renderingOf(subscription: Subscription, options: NotificationDataOptions): RenderOptions {
  const { notification, datasetId, lang } = subscription
  const set = (names: readonly string[] | undefined) => (names === undefined ? undefined : new Set(names))
  const projections = { pick: projectionOf(notification.pick), omit: projectionOf(notification.omit) }
  const plain: RenderOptions = {
    context: options.context,
    format: formatOf(notification.format),
    sysAttrs: notification.sysAttrs ?? false,
    attrs: set(notification.attributes),
    datasetId: set(datasetId),
    lang: lang === undefined ? undefined : languageRanges(lang),
    atContext: options.atContext,
  }
  return { ...projected(plain, projections), projections }
}

const formatOf = (format: NotificationFormat | undefined) =>
  format === 'keyValues' || format === 'simplified' ? 'simplified' : (format ?? 'normalized')

const shows = ({ datasetId: wanted }: RenderOptions, datasetId: string | undefined): boolean =>
  wanted?.has(datasetId ?? '@none') ?? true

/** The changes to report, by attribute. Attributes deleted with their entity are reported only on request. */
function changesByName(
  subscription: Subscription,
  { changes = [], isDeleted }: EntityReport,
  { attrs, pick, omit, ...rendering }: RenderOptions,
): Map<string, ReportedChange[]> {
  const { watchedAttributes, notificationTrigger, notification } = subscription
  const byName = new Map<string, ReportedChange[]>()
  for (const change of changes) {
    const { name, before } = change
    if (attrs?.has(name) === false || pick?.has(name) === false || omit?.has(name) === true) continue
    if (!shows(rendering, before.datasetId)) continue
    if (isDeleted === true && notification.showChanges !== true) {
      if (!notificationTrigger.includes('attributeDeleted')) continue
      if (watchedAttributes?.includes(name) === false) continue
    }
    byName.set(name, [...(byName.get(name) ?? []), change])
  }
  return byName
}

interface RenderInputs {
  readonly report: EntityReport
  readonly rendering: RenderOptions
  readonly subscription: Subscription
}

/** A rendered instance of the attribute, with its dataset. */
interface Part {
  readonly datasetId: string | undefined
  /** In the simplified form only the value. */
  readonly whole: Json
}

function renderReported(name: string, instance: AttributeInstance, inputs: RenderInputs): Part {
  const { report, rendering, subscription } = inputs
  const { datasetId } = instance
  const rendered = renderInstance(instance, rendering, false)
  if (rendering.format === 'simplified' || !isObject(rendered)) return { datasetId, whole: rendered }
  const change = report.changes?.find(
    (one) => !one.isDeleted && one.name === name && one.before.datasetId === datasetId,
  )
  const previous =
    change === undefined || subscription.notification.showChanges !== true
      ? {}
      : previousOf(change.before, rendering)
  return { datasetId, whole: { ...rendered, ...previous, ...stampsOf(name, instance, inputs) } }
}

function renderDeletion(name: string, before: AttributeInstance, inputs: RenderInputs): Part {
  const { report, rendering, subscription } = inputs
  const { datasetId } = before
  if (rendering.format === 'simplified') return { datasetId, whole: ngsiLdNull }
  const { member } = kindOf(before)
  const extras: Record<string, Json> = {
    ...(datasetId === undefined ? {} : { datasetId }),
    ...(subscription.notification.showChanges === true ? previousOf(before, rendering) : {}),
    ...stampsOf(name, before, inputs),
    ...(rendering.sysAttrs === true ? { deletedAt: msToDateTime(report.at) } : {}),
  }
  if (rendering.format === 'concise' && Object.keys(extras).length === 0)
    return { datasetId, whole: ngsiLdNull }
  const type = rendering.format === 'concise' ? {} : { type: before.type }
  const value = member === 'languageMap' ? { '@none': ngsiLdNull } : ngsiLdNull
  return { datasetId, whole: { ...type, [member]: value, ...extras } }
}

/** The previous value as previousValue, previousObject and so on (5.2.5 and following). */
function previousOf(before: AttributeInstance, { context }: RenderOptions): JsonObject {
  const { member } = kindOf(before)
  const rendered = renderInstance(before, { context, format: 'normalized' }, false) as JsonObject
  return { [`previous${member[0]!.toUpperCase()}${member.slice(1)}`]: rendered[member]! }
}

function stampsOf(
  name: string,
  { datasetId }: AttributeInstance,
  { report, rendering }: RenderInputs,
): JsonObject {
  const key = datasetId === undefined ? name : `${name} ${datasetId}`
  const pair = rendering.sysAttrs === true ? own(report.times.attributes, key) : undefined
  return pair === undefined ? {} : { createdAt: msToDateTime(pair[0]), modifiedAt: msToDateTime(pair[1]) }
}

function joined(parts: readonly Part[], { format }: RenderOptions): Json {
  const [first] = parts
  if (format !== 'simplified') return parts.length === 1 ? first!.whole : parts.map(({ whole }) => whole)
  if (parts.length === 1 && first!.datasetId === undefined) return first!.whole
  return { dataset: Object.fromEntries(parts.map(({ datasetId, whole }) => [datasetId ?? '@none', whole])) }
}
