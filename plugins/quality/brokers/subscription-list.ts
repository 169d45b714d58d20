/**
 * The analyser's subscriptions at its broker, as its page shows them: those for what it watches, and those
 * that people created here.
 */

import { randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { contextOf } from '#client/requests/received-entities.ts'
import type { FollowerRow } from '#client/subscriptions/broker-follower.ts'
import type { BrokerPort, Json } from '#contract'
import { isList, isObject, type JsonObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { alreadyExists, badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { subscriptionIds } from './analyser-watches.ts'
import type { CreatedFacts } from './broker-row.ts'

export interface ListedSubscription {
  readonly id: string
  /** Address of the broker. */
  readonly broker: string
  readonly types: readonly string[]
  /** As the broker reports it; `missing` if it has no such subscription. */
  readonly status: string
  readonly lastNotification: string | null
  readonly timesSent: number | null
  /** Whether the analyser itself needs it. */
  readonly isNeeded: boolean
}

export interface SubscriptionListPorts {
  readonly broker: BrokerPort
  readonly row: FollowerRow
  /** Callback of subscriptions that people create; undefined while there is no address. */
  readonly callback: () => string | undefined
  /** Further members of the endpoint. */
  readonly endpoint: JsonObject
}

export type SubscriptionList = ReturnType<typeof createSubscriptionList>

const path = '/ngsi-ld/v1/subscriptions'

export function createSubscriptionList({ broker, row, callback, endpoint }: SubscriptionListPorts) {
  const facts = (): CreatedFacts => row.facts()
  const created = (): readonly string[] => facts().created ?? []
  const watches = (): string[] => Object.values(facts().subscriptions ?? {}).filter((id) => id !== '')
  const save = (ids: readonly string[]): void =>
    row.set({ facts: { ...facts(), created: ids } as CreatedFacts })

  async function ask(method: string, at: string, body?: JsonObject) {
    const type = body !== undefined && '@context' in body ? 'application/ld+json' : 'application/json'
    const answer = await broker.exchange({
      method,
      path: at,
      headers: body === undefined ? { Accept: 'application/json' } : { 'Content-Type': type },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    if ('failure' in answer) throw new GatewayError('peer.unavailable', `${broker.address}: ${answer.reason}`)
    return answer
  }

  const refused = (status: number, text: string): GatewayError =>
    new GatewayError('peer.refused', `${broker.address} answered ${status}: ${text.slice(0, 300)}`)

  async function rowOf(id: string): Promise<ListedSubscription> {
    const { status, text } = await ask('GET', `${path}/${encodeURIComponent(id)}`)
    if (status !== 200 && status !== 404) throw refused(status, text)
    const json = status === 200 ? parsedJson(text) : undefined
    const body = isObject(json) ? json : {}
    const given = own(body, 'notification')
    const notification = isObject(given) ? given : {}
    const { lastNotification, timesSent } = notification
    const [inner, outer] = [own(notification, 'status'), own(body, 'status')]
    return {
      id,
      broker: broker.address,
      types: typesOf(own(body, 'entities')),
      status:
        status === 404
          ? 'missing'
          : (([outer, inner].find((one) => typeof one === 'string') as string) ?? 'active'),
      lastNotification: typeof lastNotification === 'string' ? lastNotification : null,
      timesSent: typeof timesSent === 'number' ? timesSent : null,
      isNeeded: watches().includes(id),
    }
  }

  return Object.freeze({
    /** Ids of those that people created. */
    created,

    async all(): Promise<ListedSubscription[]> {
      const rows: ListedSubscription[] = []
      for (const id of [...watches(), ...created()]) rows.push(await rowOf(id))
      return rows
    },

    /**
     * Creates a subscription for types. Its notifications come to the analyser unless it names an endpoint.
     * @param given an NGSI-LD subscription, or an object with `types` and perhaps `attributes` to watch.
     * @throws ngsi-ld.bad-request-data, peer.refused, peer.unavailable
     */
    async create(given: Json): Promise<ListedSubscription> {
      if (!isObject(given)) throw badRequestData('must be a JSON object', 'body')
      if (created().length >= limits.qualitySubscriptionsMax.value)
        throw badRequestData(`no more than ${limits.qualitySubscriptionsMax.value} can be created`, 'body')
      const { types, attributes, ...members } = given
      const entities =
        types === undefined ? own(given, 'entities') : expanded(types, 'types').map((type) => ({ type }))
      if (typesOf(entities).length === 0)
        throw badRequestData('must be a list of objects with type', 'entities')
      const id =
        typeof given['id'] === 'string' ? given['id'] : `${subscriptionIds}${randomBytes(12).toString('hex')}`
      if ([...watches(), ...created()].includes(id)) throw alreadyExists(`${id} exists already`)
      const watched =
        attributes === undefined ? {} : { watchedAttributes: expanded(attributes, 'attributes') }
      const body: JsonObject = { ...members, ...watched, id, type: 'Subscription', entities: entities! }
      if (!isObject(own(given, 'notification'))) {
        const uri = callback()
        if (uri === undefined)
          throw new GatewayError('peer.unavailable', 'this gateway has no address for notifications')
        Object.assign(body, {
          notification: { format: 'normalized', endpoint: { uri, accept: 'application/json', ...endpoint } },
        })
      }
      // Saved before it exists, so that a kill leaves no unknown subscription.
      save([...created(), id])
      const { status, text } = await ask('POST', path, body)
      if (status === 201) return rowOf(id)
      save(created().filter((one) => one !== id))
      throw status === 400 ? badRequestData(text.slice(0, 300), 'subscription') : refused(status, text)
    },

    /** @throws ngsi-ld.not-found; ngsi-ld.conflict for what the analyser itself needs. */
    async delete(id: string): Promise<void> {
      if (watches().includes(id))
        throw new GatewayError('ngsi-ld.conflict', `the analyser needs ${id} and would create it again`)
      if (!created().includes(id)) throw notFound(`no subscription with id ${id}`)
      const { status, text } = await ask('DELETE', `${path}/${encodeURIComponent(id)}`)
      if (status >= 300 && status !== 404) throw refused(status, text)
      save(created().filter((one) => one !== id))
    },
  })
}

const typesOf = (entities: Json | undefined): string[] =>
  (isList(entities) ? entities : []).flatMap((one) => {
    const type = isObject(one) ? own(one, 'type') : undefined
    return typeof type === 'string' ? [type] : []
  })

/** Names in full; short ones are those of the platform. */
function expanded(given: Json, field: string): string[] {
  const names = isList(given) ? given : [given]
  const context = contextOf(undefined)
  return names.map((name) => {
    if (typeof name !== 'string' || name === '') throw badRequestData('must be a list of names', field)
    return context.expand(name)
  })
}
