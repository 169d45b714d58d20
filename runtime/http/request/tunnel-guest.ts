/**
 * What whoever is at the other end of a tunnel may do with subscriptions: those that came through it are its own, all others
 * are not there for it. None of its own becomes an uplink or tells others than it what it may not read itself. Pure.
 */
import { GatewayError } from '#base/register/errors.ts'
import { sourceNotificationsPath } from '#federation/passing-on.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { tunnelled } from '#ngsi-ld/values/tunnel-uri.ts'

export interface TunnelGuest {
  /** Address of the centre that the settings name: by it its subscriptions are known again. */
  readonly centre: string
  /** What it calls itself in Via; undefined while that is not known. */
  readonly alias: () => string | undefined
  readonly mayRead: boolean
}

/** Whether a subscription came through the tunnel to this centre; those from before that was noted tell by where they go. */
export function isOf(guest: TunnelGuest, { asked, notification }: Subscription): boolean {
  if (asked?.tunnel !== undefined) return asked.tunnel === guest.centre
  const end = tunnelled(notification.endpoint.uri)
  return end?.alias === guest.alias() && end?.path.startsWith(`${sourceNotificationsPath}/`) === true
}

/** @throws http.forbidden when the centre may not have such a subscription here. */
export function allowSubscription(guest: TunnelGuest, { notification }: Subscription): void {
  const { uri, notifierInfo = [] } = notification.endpoint
  if (notifierInfo.some(({ key }) => key === 'selvedge:mode'))
    throw forbidden('notification.endpoint.notifierInfo: selvedge:mode is not for who comes through a tunnel')
  if (!guest.mayRead && !isAt(guest, uri))
    throw forbidden(
      'notification.endpoint.uri: without the right to read, only the centre itself is notified',
    )
}

/** Whether an address is at the other end of the tunnel, or where that is reached otherwise. */
function isAt({ centre, alias }: TunnelGuest, uri: string): boolean {
  const end = tunnelled(uri)
  if (end !== undefined) return end.alias === alias()
  return /^https?:/i.test(uri) && URL.canParse(uri) && new URL(uri).origin === new URL(centre).origin
}

const forbidden = (detail: string): GatewayError => new GatewayError('http.forbidden', detail)
