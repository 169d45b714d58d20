/**
 * A component's subscriptions at other brokers. Brokers accept different forms: some know no triggers, some
 * require watched attributes. The status check finds missing or changed subscriptions and failed deliveries.
 */
import { randomBytes } from 'node:crypto'
import type { BrokerClient, RequestTrouble, Result } from '#client/requests/broker-requests.ts'
import { isObject, type JsonObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { subscriptionOf, type Watch } from './watch.ts'

export interface CreatedSubscription {
  readonly id: string
  /** Whether the broker also notifies of deletions. */
  readonly tellsDeletions: boolean
}

export interface RemoteSubscriptionStatus {
  readonly kind: 'as expected' | 'different' | 'missing'
  /** When the broker last reported a failed delivery; undefined if the latest one succeeded. */
  readonly failedAt: string | undefined
}

const path = '/ngsi-ld/v1/subscriptions'
const headers = { 'Content-Type': 'application/json' }
const triggers = ['entityCreated', 'entityUpdated', 'entityDeleted']

/** Creates a subscription. */
export async function subscribe(
  watch: Watch,
  { uri, idPrefix }: { readonly uri: string; readonly idPrefix: string },
  client: BrokerClient,
): Promise<Result<CreatedSubscription>> {
  const id = `${idPrefix}${randomBytes(12).toString('hex')}`
  const plain = subscriptionOf(watch, id, { uri })
  const forms: readonly (readonly [JsonObject, boolean])[] = [
    [{ ...plain, notificationTrigger: triggers }, true],
    [plain, false],
    [{ ...plain, watchedAttributes: watch.attributes }, false],
  ]
  let trouble: RequestTrouble | undefined
  for (const [body, tellsDeletions] of forms) {
    const answer = await client.request({ method: 'POST', path, headers, body: JSON.stringify(body) }, [201])
    if ('value' in answer) {
      const location = answer.value.headers['location']?.split('/').at(-1)
      return { value: { id: location === undefined ? id : decodeURIComponent(location), tellsDeletions } }
    }
    // The first refusal is the most informative.
    trouble ??= answer.trouble
    if (answer.trouble.kind === 'down') return answer
  }
  return { trouble: trouble! }
}

/** Deletes a subscription. A missing one counts as deleted. */
export async function unsubscribe(id: string, client: BrokerClient): Promise<RequestTrouble | undefined> {
  const request = { method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` }
  const answer = await client.request(request, [200, 202, 204, 404])
  return 'trouble' in answer ? answer.trouble : undefined
}

export async function subscriptionStatus(
  id: string,
  uri: string,
  client: BrokerClient,
): Promise<Result<RemoteSubscriptionStatus>> {
  const request = {
    method: 'GET',
    path: `${path}/${encodeURIComponent(id)}`,
    headers: { Accept: 'application/json' },
  }
  const answer = await client.request(request, [200, 404])
  if ('trouble' in answer) return answer
  if (answer.value.status === 404) return { value: { kind: 'missing', failedAt: undefined } }
  const body = parsedJson(answer.value.text)
  const notification = isObject(body) ? own(body, 'notification') : undefined
  if (!isObject(notification))
    return { trouble: { kind: 'refused', reason: 'the response is not a subscription' } }
  const endpoint = own(notification, 'endpoint')
  const isOurs = isObject(endpoint) && endpoint['uri'] === uri
  return { value: { kind: isOurs ? 'as expected' : 'different', failedAt: failureIn(notification) } }
}

function failureIn(notification: JsonObject): string | undefined {
  const { lastFailure, lastSuccess, lastNotification, status } = notification
  // Some brokers report only a status and the last notification.
  if (typeof lastFailure !== 'string')
    return status === 'failed' && typeof lastNotification === 'string' ? lastNotification : undefined
  return typeof lastSuccess === 'string' && lastSuccess >= lastFailure ? undefined : lastFailure
}
