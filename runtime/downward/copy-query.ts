/**
 * Builds the query and the subscription for entities to copy from a centre (GS CIM 009, 5.7.2 and 5.2.12).
 * Pure.
 */
import type { Settings } from '#config/schema/settings-schema.ts'
import { streamUri } from '#ngsi-ld/subscription/subscription.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

export type CopySettings = Settings['copies'][number]

/** The path of one page of the query. */
export function pageOf(
  options: CopySettings,
  page: { readonly limit: number; readonly offset: number },
): string {
  const { types, ids, idPattern, q } = options
  const parameters = {
    type: types.join(','),
    ...(ids.length === 0 ? {} : { id: ids.join(',') }),
    ...(idPattern === undefined ? {} : { idPattern }),
    ...(q === undefined ? {} : { q }),
    options: 'sysAttrs',
    count: 'true',
    limit: String(page.limit),
    offset: String(page.offset),
  }
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return `/entities?${pairs.join('&')}`
}

export const copySubscriptionId = (alias: string, name: string): string =>
  `urn:ngsi-ld:Subscription:${alias}:${encodeURIComponent(name)}`

/** The subscription that this gateway streams from the centre; its expiry time is added when it is sent. */
export function subscriptionFor(
  id: string,
  { types, ids, idPattern, q, context, name }: CopySettings,
): JsonObject {
  const which: JsonObject[] =
    ids.length > 0 ? ids.map((each) => ({ id: each })) : [idPattern === undefined ? {} : { idPattern }]
  return {
    id,
    type: 'Subscription',
    subscriptionName: `copies ${name}`,
    entities: types.flatMap((type) => which.map((one) => ({ ...one, type }))),
    ...(q === undefined ? {} : { q }),
    notificationTrigger: ['entityCreated', 'entityUpdated', 'entityDeleted', 'attributeDeleted'],
    notification: { sysAttrs: true, endpoint: { uri: streamUri, accept: 'application/json' } },
    ...(context === undefined ? {} : { '@context': context }),
  }
}
