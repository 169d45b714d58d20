/**
 * What a notification tells of one entity [NGSI-LD 5.8.6]: the entity in the form the subscription asks for, what was
 * deleted as NGSI-LD Null, and with showChanges what was there before. Pure; who reads it need not know what the
 * entity became since.
 */
import type { Json } from '#contract/pipeline.ts'
import { kindOf, ngsiLdNull } from './attribute-kind.ts'
import type { Context } from './context.ts'
import { msToDateTime } from './datetime.ts'
import { type AttributeInstance, type Entity, instancesOf } from './entity.ts'
import type { AttributeChange } from './entity-draft.ts'
import { isObject, type JsonObject, own } from './json.ts'
import { languageRanges } from './language.ts'
import { type RenderOptions, renderEntity, renderInstance, type SystemTimes } from './representation.ts'
import type { NotificationFormat, Subscription } from './subscription.ts'

/** What is owed for a change of an entity: enough to tell it, whatever happened since. */
export interface OwedEntity {
  /** The entity after the change; only id and type when it was deleted. */
  readonly entity: Entity
  /** Those of deleted attributes too. */
  readonly times: SystemTimes
  /** The instances deleted and, where what was before is to be told, those that became something else. */
  readonly changes?: readonly OwedChange[] | undefined
  /** When the change was made, ms; deleted instances were deleted then. */
  readonly at: number
  /** The entity itself was deleted. */
  readonly isDeleted?: boolean | undefined
}

/** What happened to one instance: there was one before, and it is gone or another one. */
export interface OwedChange {
  readonly name: string
  readonly before: AttributeInstance
  readonly isDeleted: boolean
}

/** The changes that a notification may have to tell. */
export function owedChanges(changes: readonly AttributeChange[], all: boolean): OwedChange[] {
  return changes.flatMap(({ name, before, after }) =>
    before !== undefined && (all || after === undefined)
      ? [{ name, before, isDeleted: after === undefined }]
      : [],
  )
}

export interface TellOptions {
  readonly context: Context
  /** Becomes the member `@context`. */
  readonly atContext?: Json | undefined
}

/** The item of `data` that tells this change to the subscriber. */
export function notificationItem(
  subscription: Subscription,
  owed: OwedEntity,
  options: TellOptions,
): JsonObject {
  const rendering = renderingOf(subscription, options)
  const { entity, times, isDeleted } = owed
  const told: Record<string, Json> = { ...renderEntity(entity, times, rendering) }
  const stamp = msToDateTime(owed.at)
  if (isDeleted === true) told['deletedAt'] = stamp
  for (const [name, changes] of changesByName(subscription, owed, rendering)) {
    const instances = instancesOf(entity, name).filter(({ datasetId }) => shows(rendering, datasetId))
    const parts = [
      ...instances.map((instance) => toldInstance(name, instance, { owed, rendering, subscription })),
      ...changes
        .filter((change) => change.isDeleted)
        .map(({ before }) => toldDeletion(name, before, { owed, rendering, subscription })),
    ]
    if (parts.length > 0) told[options.context.compact(name)] = joined(parts, rendering)
  }
  return told
}

/** How a subscription wants entities written. */
export function renderingOf(subscription: Subscription, options: TellOptions): RenderOptions {
  const { notification, datasetId, lang } = subscription
  const set = (names: readonly string[] | undefined) => (names === undefined ? undefined : new Set(names))
  return {
    context: options.context,
    format: formatOf(notification.format),
    sysAttrs: notification.sysAttrs ?? false,
    attrs: set(notification.attributes),
    pick: set(notification.pick),
    omit: set(notification.omit),
    datasetId: set(datasetId),
    lang: lang === undefined ? undefined : languageRanges(lang),
    atContext: options.atContext,
  }
}

const formatOf = (format: NotificationFormat | undefined) =>
  format === 'keyValues' || format === 'simplified' ? 'simplified' : (format ?? 'normalized')

const shows = ({ datasetId: wanted }: RenderOptions, datasetId: string | undefined): boolean =>
  wanted?.has(datasetId ?? '@none') ?? true

/** The changes to tell, by attribute. Attributes that went with their entity are told where that is asked for. */
function changesByName(
  subscription: Subscription,
  { changes = [], isDeleted }: OwedEntity,
  { attrs, pick, omit, ...rendering }: RenderOptions,
): Map<string, OwedChange[]> {
  const { watchedAttributes, notificationTrigger, notification } = subscription
  const byName = new Map<string, OwedChange[]>()
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

interface Telling {
  readonly owed: OwedEntity
  readonly rendering: RenderOptions
  readonly subscription: Subscription
}

/** One instance as it will stand in the attribute: with its dataset, and its value alone where nothing else is told. */
interface Part {
  readonly datasetId: string | undefined
  /** In the simplified form the value. */
  readonly whole: Json
}

function toldInstance(name: string, instance: AttributeInstance, telling: Telling): Part {
  const { owed, rendering, subscription } = telling
  const { datasetId } = instance
  const rendered = renderInstance(instance, rendering, false)
  if (rendering.format === 'simplified' || !isObject(rendered)) return { datasetId, whole: rendered }
  const change = owed.changes?.find(
    (one) => !one.isDeleted && one.name === name && one.before.datasetId === datasetId,
  )
  const previous =
    change === undefined || subscription.notification.showChanges !== true
      ? {}
      : previousOf(change.before, rendering)
  return { datasetId, whole: { ...rendered, ...previous, ...stampsOf(name, instance, telling) } }
}

function toldDeletion(name: string, before: AttributeInstance, telling: Telling): Part {
  const { owed, rendering, subscription } = telling
  const { datasetId } = before
  if (rendering.format === 'simplified') return { datasetId, whole: ngsiLdNull }
  const { member } = kindOf(before)
  const extras: Record<string, Json> = {
    ...(datasetId === undefined ? {} : { datasetId }),
    ...(subscription.notification.showChanges === true ? previousOf(before, rendering) : {}),
    ...stampsOf(name, before, telling),
    ...(rendering.sysAttrs === true ? { deletedAt: msToDateTime(owed.at) } : {}),
  }
  if (rendering.format === 'concise' && Object.keys(extras).length === 0)
    return { datasetId, whole: ngsiLdNull }
  const type = rendering.format === 'concise' ? {} : { type: before.type }
  const value = member === 'languageMap' ? { '@none': ngsiLdNull } : ngsiLdNull
  return { datasetId, whole: { ...type, [member]: value, ...extras } }
}

/** The value that was, under the name for that: previousValue, previousObject and so on (5.2.5 and following). */
function previousOf(before: AttributeInstance, { context }: RenderOptions): JsonObject {
  const { member } = kindOf(before)
  const rendered = renderInstance(before, { context, format: 'normalized' }, false) as JsonObject
  return { [`previous${member[0]!.toUpperCase()}${member.slice(1)}`]: rendered[member]! }
}

function stampsOf(name: string, { datasetId }: AttributeInstance, { owed, rendering }: Telling): JsonObject {
  const key = datasetId === undefined ? name : `${name} ${datasetId}`
  const pair = rendering.sysAttrs === true ? own(owed.times.attributes, key) : undefined
  return pair === undefined ? {} : { createdAt: msToDateTime(pair[0]), modifiedAt: msToDateTime(pair[1]) }
}

function joined(parts: readonly Part[], { format }: RenderOptions): Json {
  const [first] = parts
  if (format !== 'simplified') return parts.length === 1 ? first!.whole : parts.map(({ whole }) => whole)
  if (parts.length === 1 && first!.datasetId === undefined) return first!.whole
  return { dataset: Object.fromEntries(parts.map(({ datasetId, whole }) => [datasetId ?? '@none', whole])) }
}
