/** Takes notifications of the broker: checks the secret of the address and the content, and stores them. */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { isObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { SharedSubscriptions } from '#plugins/orchestrator/subscriptions/shared-subscriptions.ts'
import type { NotificationOutbox } from './notification-outbox.ts'

export interface ReceiptPorts {
  readonly subscriptions: Pick<SharedSubscriptions, 'ofSecret'>
  readonly outbox: Pick<NotificationOutbox, 'append'>
  readonly received: () => void
}

export function createReceipt({ subscriptions, outbox, received }: ReceiptPorts) {
  return Object.freeze({
    /**
     * Resolves with the id of a notification once it is on disk.
     * @param secret last segment of the address that it was sent to.
     * @throws http.unauthorized, http.body-too-large, ngsi-ld.invalid-request, ngsi-ld.bad-request-data,
     * ngsi-ld.not-found, http.busy, or the error of a failing disk.
     */
    async receive(secret: string, read: () => Promise<Buffer>): Promise<string> {
      const subscription = subscriptions.ofSecret(secret)
      if (subscription === undefined)
        throw new GatewayError(
          'http.unauthorized',
          'the callback URL does not have the secret of a subscription',
        )
      const body = await read()
      if (body.length > limits.orchestratorNotificationBytes.value)
        throw new GatewayError(
          'http.body-too-large',
          `a notification may have ${limits.orchestratorNotificationBytes.value} bytes`,
        )
      const id = checkNotification(body, subscription.id)
      await outbox.append(subscription.id, body)
      received()
      return id
    },
  })
}

function checkNotification(body: Buffer, subscription: string): string {
  const notification = parsedJson(body.toString())
  if (notification === undefined) throw invalidRequest('the body is not valid JSON')
  if (!isObject(notification) || own(notification, 'type') !== 'Notification')
    throw badRequestData('must be Notification', 'type')
  const { id, subscriptionId, data } = notification
  if (typeof id !== 'string') throw badRequestData('must be a URI', 'id')
  if (typeof data !== 'object' || data === null) throw badRequestData('must be an array or an object', 'data')
  if (subscriptionId !== subscription)
    throw notFound(`the subscription of this address is not ${JSON.stringify(subscriptionId)}`)
  return id
}
