/**
 * Deletions within temporal entities from clients (GS CIM 009, 5.5.4). An instance with NGSI-LD Null as its
 * content means that the attribute was deleted: at its deletedAt, else its observedAt, else the time of the
 * write. Pure.
 */
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { inferKind, kindNamed } from '#ngsi-ld/entity/attribute-kind.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isList, isObject, own } from '#ngsi-ld/values/json.ts'
import { checkUri, ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface PastDeletion {
  readonly name: string
  readonly dataset: string
  /** Kind of attribute. */
  readonly type: string
  /** ms; undefined if the instance has no time. */
  readonly at: number | undefined
}

/** The deletion that an item of an attribute represents; undefined if the item is an instance. */
export function deletionOf(item: Json, name: string): PastDeletion | undefined {
  if (!isObject(item)) return undefined
  const type = own(item, 'type')
  const kind = (typeof type === 'string' ? kindNamed(type) : undefined) ?? inferKind(item)
  const content = kind === undefined ? undefined : own(item, kind.member)
  const isLanguageNull =
    isObject(content) && kind?.member === 'languageMap' && content['@none'] === ngsiLdNull
  // A history represents the removal of all scopes in this form.
  const isNoScope =
    name === 'scope' && isList(content) && content.length === 0 && own(item, 'deletedAt') !== undefined
  if (kind === undefined || (content !== ngsiLdNull && !isLanguageNull && !isNoScope)) return undefined
  const dataset = own(item, 'datasetId') ?? '@none'
  return {
    name,
    dataset: dataset === '@none' ? '' : checkUri(dataset, `${name}.datasetId`),
    type: kind.name,
    at: timeIn(own(item, 'deletedAt') ?? own(item, 'observedAt'), name),
  }
}

function timeIn(text: Json | undefined, name: string): number | undefined {
  if (text === undefined) return undefined
  const at = typeof text === 'string' ? dateTimeToMs(text) : undefined
  if (at === undefined) throw badRequestData("a deletion's time must be a DateTime", name)
  return at
}

/** Whether a deletion in the same body ended an instance. */
export function isEnded(
  deletions: readonly PastDeletion[],
  name: string,
  { datasetId = '', observedAt }: AttributeInstance,
): boolean {
  if (deletions.length === 0) return false
  const time = dateTimeToMs(observedAt ?? '')
  return deletions.some(
    (one) =>
      one.name === name &&
      one.dataset === datasetId &&
      (one.at === undefined || (time !== undefined && time <= one.at)),
  )
}
