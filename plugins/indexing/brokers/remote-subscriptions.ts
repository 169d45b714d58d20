/**
 * Subscriptions of the index at another broker. Brokers differ in what they take: one that knows no triggers is asked without them,
 * one that wants watched attributes gets them. What was made is looked after: that it is there, notifies us, and gets through.
 */
import { randomBytes } from 'node:crypto'
import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { jsonIn } from '#plugins/indexing/entries/broker-messages.ts'
import { paths, relativeLocation } from '#plugins/indexing/entries/entity-kinds.ts'
import type { Asking, Result, Trouble } from './broker-requests.ts'
import { subscriptionOf } from './watched.ts'

export interface Made {
  readonly id: string
  /** Whether deletions are told, too. */
  readonly tellsDeletions: boolean
}

export interface Standing {
  readonly kind: 'as wanted' | 'otherwise' | 'gone'
  /** When the broker last failed to notify us, as it says; undefined where the last time went well. */
  readonly failedAt: string | undefined
}

const path = '/ngsi-ld/v1/subscriptions'
const headers = { 'Content-Type': 'application/json' }
const triggers = ['entityCreated', 'entityUpdated', 'entityDeleted']
const qoi = 'https://w3id.org/iot/qoi#'
const rdfs = 'http://www.w3.org/2000/01/rdf-schema#'

/** What is watched where a broker insists on names. */
const watchedNames: Readonly<Record<string, readonly string[]>> = {
  stream: [paths.generatedBy, `${qoi}hasQuality`],
  sensor: ['location', paths.relativePlace, paths.observes],
  qoi: ['plausibility', 'completeness', 'age', 'frequency'].map((name) => qoi + name),
  point: [relativeLocation],
  property: [`${rdfs}label`],
  platform: ['location', `${rdfs}label`],
}

/** Subscribes for one purpose. */
export async function subscribe(purpose: string, uri: string, asking: Asking): Promise<Result<Made>> {
  const id = `urn:ngsi-ld:Subscription:indexing:${randomBytes(12).toString('hex')}`
  const plain = subscriptionOf(purpose, id, { uri })
  const forms: readonly (readonly [JsonObject, boolean])[] = [
    [{ ...plain, notificationTrigger: triggers }, true],
    [plain, false],
    [{ ...plain, watchedAttributes: watchedNames[purpose]! }, false],
  ]
  let trouble: Trouble | undefined
  for (const [body, tellsDeletions] of forms) {
    const answer = await asking.want({ method: 'POST', path, headers, body: JSON.stringify(body) }, [201])
    if ('value' in answer) {
      const location = answer.value.headers['location']?.split('/').at(-1)
      return { value: { id: location === undefined ? id : decodeURIComponent(location), tellsDeletions } }
    }
    // The first refusal says most.
    trouble ??= answer.trouble
    if (answer.trouble.kind === 'down') return answer
  }
  return { trouble: trouble! }
}

/** Removes one; one that is gone is as good. */
export async function unsubscribe(id: string, asking: Asking): Promise<Trouble | undefined> {
  const request = { method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` }
  const answer = await asking.want(request, [200, 202, 204, 404])
  return 'trouble' in answer ? answer.trouble : undefined
}

export async function standingOf(id: string, uri: string, asking: Asking): Promise<Result<Standing>> {
  const request = {
    method: 'GET',
    path: `${path}/${encodeURIComponent(id)}`,
    headers: { Accept: 'application/json' },
  }
  const answer = await asking.want(request, [200, 404])
  if ('trouble' in answer) return answer
  if (answer.value.status === 404) return { value: { kind: 'gone', failedAt: undefined } }
  const body = jsonIn(answer.value.text)
  const notification = isObject(body) ? own(body, 'notification') : undefined
  if (!isObject(notification))
    return { trouble: { kind: 'refused', reason: 'what it answers is no subscription' } }
  const endpoint = own(notification, 'endpoint')
  const isOurs = isObject(endpoint) && endpoint['uri'] === uri
  return { value: { kind: isOurs ? 'as wanted' : 'otherwise', failedAt: failureIn(notification) } }
}

function failureIn(notification: JsonObject): string | undefined {
  const { lastFailure, lastSuccess, lastNotification, status } = notification
  // Some brokers say no more than that.
  if (typeof lastFailure !== 'string')
    return status === 'failed' && typeof lastNotification === 'string' ? lastNotification : undefined
  return typeof lastSuccess === 'string' && lastSuccess >= lastFailure ? undefined : lastFailure
}
