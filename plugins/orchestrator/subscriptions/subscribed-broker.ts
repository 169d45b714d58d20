/** Subscriptions of the orchestrator at the broker: creates, finds and deletes them. */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerPort, WrittenAnswer } from '#contract'
import { isObject, type JsonObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { selectedIds } from './subscription-form.ts'

/** Headers of a client that the broker has to see, such as its token. */
export type ClientHeaders = Readonly<Record<string, string>>

interface Named {
  readonly id: string
  readonly tenant: string
}

export type FoundSubscription = 'as expected' | 'different' | 'missing'

export type SubscribedBroker = ReturnType<typeof createSubscribedBroker>

const path = '/ngsi-ld/v1/subscriptions'
const uriIn = (text: string): unknown => {
  const body = parsedJson(text)
  const notification = isObject(body) ? own(body, 'notification') : undefined
  const endpoint = isObject(notification) ? own(notification, 'endpoint') : undefined
  return isObject(endpoint) ? endpoint['uri'] : undefined
}

export interface SubscribedBrokerSettings {
  /** Whether the broker has rights of its own: then it is asked before a request is answered without it. */
  readonly hasRights: boolean
  readonly monotonic: () => number
}

export function createSubscribedBroker(port: BrokerPort, { hasRights, monotonic }: SubscribedBrokerSettings) {
  /** When credentials were last accepted, by their hash; the least recent first. */
  const accepted = new Map<string, number>()

  async function send(
    request: { readonly method: string; readonly path: string; readonly body?: string },
    { tenant }: Named,
    headers: ClientHeaders,
  ): Promise<WrittenAnswer> {
    const answer = await port.exchange({
      ...request,
      headers: {
        Accept: 'application/json',
        ...headers,
        ...(request.body === undefined ? {} : { 'Content-Type': 'application/ld+json' }),
        ...(tenant === '' ? {} : { 'NGSILD-Tenant': tenant }),
      },
    })
    if ('status' in answer) return answer
    const code = answer.failure === 'timeout' ? 'peer.timeout' : 'peer.unavailable'
    throw new GatewayError(code, `${port.address}: ${answer.reason}`)
  }

  const pathOf = ({ id }: Named): string => `${path}/${encodeURIComponent(id)}`

  /** @param ids of its entities; they are not compared without it. */
  async function find(
    subscription: Named,
    uri: string,
    ids?: ReadonlySet<string>,
  ): Promise<FoundSubscription> {
    const answer = await send({ method: 'GET', path: pathOf(subscription) }, subscription, {})
    if (answer.status === 404) return 'missing'
    if (answer.status !== 200) throw refusal(answer)
    if (uriIn(answer.text) !== uri) return 'different'
    const found = parsedJson(answer.text)
    const isSame =
      ids === undefined || areSame(ids, selectedIds(isObject(found) ? own(found, 'entities') : []))
    return isSame ? 'as expected' : 'different'
  }

  /** @throws BrokerRefusal with the response of the broker; peer.unavailable, peer.timeout. */
  async function create(subscription: Named, body: JsonObject, headers: ClientHeaders): Promise<void> {
    const request = { method: 'POST', path, body: JSON.stringify(body) }
    const answer = await send(request, subscription, headers)
    if (answer.status === 201 || answer.status === 200) return
    // An earlier attempt may have created it without a response.
    const uri = uriIn(request.body)
    if (answer.status === 409 && typeof uri === 'string' && (await find(subscription, uri)) === 'as expected')
      return
    throw refusal(answer)
  }

  /** A missing subscription counts as deleted. @throws as `create`. */
  async function remove(subscription: Named, headers: ClientHeaders): Promise<void> {
    const answer = await send({ method: 'DELETE', path: pathOf(subscription) }, subscription, headers)
    if (![200, 202, 204, 404].includes(answer.status)) throw refusal(answer)
  }

  return Object.freeze({
    address: port.address,
    create,
    remove,
    find,
    /**
     * Changes the entities and the notification of a subscription, so that the broker keeps what it has not
     * sent yet. At a broker that refuses this, the subscription is replaced.
     * @throws as `create`.
     */
    async change(subscription: Named, body: JsonObject): Promise<void> {
      const { type = null, entities, notification = null, '@context': context = null } = body
      const changes = {
        type,
        ...(entities === undefined ? {} : { entities }),
        notification,
        '@context': context,
      }
      const request = { method: 'PATCH', path: pathOf(subscription), body: JSON.stringify(changes) }
      const answer = await send(request, subscription, {})
      if (answer.status === 204 || answer.status === 200) return
      if (answer.status >= 500) throw refusal(answer)
      await remove(subscription, {})
      await create(subscription, body, {})
    },
    /**
     * Asks the broker whether a client may read a subscription. Credentials that it accepted count for
     * `limits.orchestratorRightsMs`, and longer while it cannot be reached.
     *
     * @throws BrokerRefusal for 401 and 403; as `create` if the broker cannot be reached.
     */
    async checkRights(subscription: Named, headers: ClientHeaders): Promise<void> {
      if (!hasRights) return
      const key = hash('sha256', JSON.stringify([subscription.id, subscription.tenant, headers]))
      const acceptedAt = accepted.get(key)
      if (acceptedAt !== undefined && monotonic() - acceptedAt < limits.orchestratorRightsMs.value) return
      const answer = await send({ method: 'GET', path: pathOf(subscription) }, subscription, headers).catch(
        (error: unknown) => {
          if (acceptedAt === undefined) throw error
          return undefined
        },
      )
      if (answer === undefined) return
      accepted.delete(key)
      if (answer.status === 401 || answer.status === 403) throw refusal(answer)
      accepted.set(key, monotonic())
      if (accepted.size > limits.orchestratorRightsMax.value) accepted.delete(accepted.keys().next().value!)
    },
  })
}

const areSame = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  one.size === other.size && one.isSubsetOf(other)

/** A response of the broker that the client has to see as it is. */
export interface BrokerRefusal {
  readonly refusal: WrittenAnswer
}

export const isRefusal = (error: unknown): error is BrokerRefusal =>
  typeof error === 'object' && error !== null && 'refusal' in error

function refusal(answer: WrittenAnswer): GatewayError & BrokerRefusal {
  const error = new GatewayError(
    'peer.refused',
    `the broker answered ${answer.status}: ${answer.text.slice(0, 200)}`,
  )
  return Object.assign(error, { refusal: answer })
}
