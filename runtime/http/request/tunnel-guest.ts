/**
 * Rights of the centre at the other end of a tunnel over subscriptions. It sees only subscriptions that it
 * created through the tunnel. Its subscriptions cannot be uplinks, and without the right to read they may
 * notify only the centre itself. Pure.
 */
import { GatewayError } from '#base/register/errors.ts'
import { sourceNotificationsPath } from '#federation/subscription-forwarding.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { tunnelled } from '#ngsi-ld/values/tunnel-uri.ts'

export interface TunnelGuest {
  /** The configured address of the centre, by which its subscriptions are recognized. */
  readonly centre: string
  /** The centre's pseudonym in Via; undefined until it is known. */
  readonly alias: () => string | undefined
  readonly mayRead: boolean
}

/**
 * Whether a subscription came through the tunnel to this centre. Subscriptions stored without that note are
 * recognized by their endpoint.
 */
export function belongsTo(guest: TunnelGuest, { asked, notification }: Subscription): boolean {
  if (asked?.tunnel !== undefined) return asked.tunnel === guest.centre
  const end = tunnelled(notification.endpoint.uri)
  return end?.alias === guest.alias() && end?.path.startsWith(`${sourceNotificationsPath}/`) === true
}

/** @throws http.forbidden if the centre may not create such a subscription. */
export function allowSubscription(guest: TunnelGuest, { notification }: Subscription): void {
  const { uri, notifierInfo = [] } = notification.endpoint
  if (notifierInfo.some(({ key }) => key === 'selvedge:mode'))
    throw forbidden('notification.endpoint.notifierInfo: selvedge:mode is not allowed through a tunnel')
  if (!guest.mayRead && !isAt(guest, uri))
    throw forbidden(
      'notification.endpoint.uri: without the right to read, it must be an address of the centre itself',
    )
}

/** Whether an address belongs to the centre, through the tunnel or at its own origin. */
function isAt({ centre, alias }: TunnelGuest, uri: string): boolean {
  const end = tunnelled(uri)
  if (end !== undefined) return end.alias === alias()
  return /^https?:/i.test(uri) && URL.canParse(uri) && new URL(uri).origin === new URL(centre).origin
}

const forbidden = (detail: string): GatewayError => new GatewayError('http.forbidden', detail)
