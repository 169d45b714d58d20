/**
 * The subscriptions of models at the gateway's own broker, so that clients see what a model watches: one to
 * streams with its properties, and one to the observations of its groups. They only document this: the log
 * is followed, and the broker sends no notification for them. One that was deleted is created again.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { BrokerPort } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import { isObject, type JsonObject, parsedJson, sameJson } from '#ngsi-ld/values/json.ts'

export interface ModelSubscriptionsPorts {
  readonly broker: BrokerPort
  /** Base address of the callbacks; undefined while no listener is open. */
  readonly address: () => string | undefined
  readonly log: Log
}

/** A model as its subscriptions describe it. */
export interface Watched {
  readonly id: string
  readonly properties: readonly string[]
  /** Streams of its groups. */
  readonly members: readonly string[]
}

const purposes = ['stream', 'observation'] as const
type Purpose = (typeof purposes)[number]

/** The id of a subscription of a model. */
export const subscriptionId = (model: string, purpose: Purpose): string =>
  `urn:ngsi-ld:Subscription:patterns:${model}:${purpose}`

const path = '/ngsi-ld/v1/subscriptions'
const jsonHeaders = { 'Content-Type': 'application/json' }

export function createModelSubscriptions({ broker, address, log }: ModelSubscriptionsPorts) {
  /** Subscriptions that were seen at the broker. */
  const seen = new Set<string>()
  let failures: readonly string[] = []

  async function request(method: string, at: string, body?: JsonObject): Promise<number | undefined> {
    const answer = await broker.exchange({
      method,
      path: at,
      headers: body === undefined ? {} : jsonHeaders,
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    if ('status' in answer && (answer.status < 300 || answer.status === 404 || answer.status === 409))
      return answer.status
    const reason = 'status' in answer ? answer.text.slice(0, 500) : answer.reason
    failures = [...failures, `${method} ${at}: ${reason}`]
    return undefined
  }

  async function ensure(model: Watched, purpose: Purpose, base: string): Promise<void> {
    const id = subscriptionId(model.id, purpose)
    const wanted = subscriptionOf(model, purpose, `${base}/api/notification/${purpose}`)
    const answer = await broker.exchange({ method: 'GET', path: `${path}/${id}` })
    const found = 'status' in answer && answer.status === 200 ? parsedJson(answer.text) : undefined
    if (isObject(found)) {
      seen.add(id)
      const { q, notification } = wanted
      const uri = (json: unknown): unknown =>
        isObject(json) && isObject(json['endpoint']) ? json['endpoint']['uri'] : undefined
      if (sameJson(found['q'], q) && uri(found['notification']) === uri(notification)) return
      await request('DELETE', `${path}/${id}`)
    } else if (!('status' in answer) || answer.status !== 404) return
    else if (seen.has(id))
      log.warn('patterns.subscription-gone', { broker: broker.address, subscription: id })
    const status = await request('POST', path, { id, type: 'Subscription', ...wanted })
    if (status === 201) seen.add(id)
  }

  return Object.freeze({
    /** Creates missing subscriptions of these models, and updates others. */
    async check(models: readonly Watched[]): Promise<void> {
      failures = []
      const base = address()
      if (base === undefined) return
      for (const model of models) for (const purpose of purposes) await ensure(model, purpose, base)
    },
    async remove(model: string): Promise<void> {
      for (const purpose of purposes) {
        const id = subscriptionId(model, purpose)
        seen.delete(id)
        await request('DELETE', `${path}/${id}`)
      }
    },
    /** Failures of the last check. */
    failures: () => failures,
  })
}

function subscriptionOf({ id, properties, members }: Watched, purpose: Purpose, uri: string): JsonObject {
  const notification = (attributes: readonly string[]): JsonObject => ({
    attributes,
    format: 'normalized',
    endpoint: {
      uri,
      accept: 'application/json',
      notifierInfo: [{ key: 'selvedge:mode', value: 'follower' }],
    },
  })
  if (purpose === 'stream') {
    const attributes = [sosa.observes, 'location']
    return {
      description: `Streams of the pattern model ${id}`,
      entities: [{ type: iotStream.IotStream }],
      watchedAttributes: attributes,
      q: isAnyOf(sosa.observes, properties),
      notification: notification(attributes),
    }
  }
  const attributes = [sosa.hasSimpleResult, sosa.resultTime, iotStream.belongsTo]
  const isShort = members.length > 0 && members.length <= limits.patternNamedStreamsMax.value
  return {
    description: `Observations of the streams of the pattern model ${id}`,
    entities: [{ type: iotStream.StreamObservation }],
    watchedAttributes: attributes,
    ...(isShort ? { q: isAnyOf(iotStream.belongsTo, members) } : {}),
    notification: notification(attributes),
  }
}

const isAnyOf = (name: string, ids: readonly string[]): string =>
  [...new Set(ids)].map((id) => `${name}=="${id}"`).join('|')
