/**
 * Opens the sender of notifications by HTTP, MQTT and tunnels, and the outboxes of tenants. A notification is
 * rendered when it is sent.
 */

import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import { renderSourceNotification } from '#broker/sources/source-notification.ts'
import { renderNotification } from '#broker/subscriptions/notification.ts'
import { createRenderedItems } from '#broker/subscriptions/rendered-items.ts'
import type { Outside, TenantParts } from '#broker/tenant/tenant-connections.ts'
import { trustedWith } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { profiles } from '#ngsi-ld/values/profile.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import { createOutbox } from './outbox.ts'
import { createSender, type SenderPorts } from './sender.ts'

export interface DeliveryParts extends Instruments {
  readonly opened: AsyncDisposableStack
  readonly settings: Pick<Settings, 'outbound' | 'conformance'>
  readonly contexts: Contexts
  readonly publish: SenderPorts['publish']
  readonly tunnel: SenderPorts['tunnel']
  readonly component: SenderPorts['component']
}

export function openDelivery(parts: DeliveryParts) {
  const { opened, settings, contexts, publish, tunnel, component, clock, log, metrics } = parts
  const { allowLoopback, caFile } = settings.outbound
  const { servesPlatform } = profiles[settings.conformance.profile]
  const sender = createSender(
    { clock, publish, tunnel, component },
    { allowsLoopback: allowLoopback, ca: trustedWith(caFile) },
  )
  opened.defer(() => sender.close())
  const items = createRenderedItems()

  /** Opens the outbox of a tenant, which sends pending deliveries at once. */
  function outbox(tenant: TenantParts): Outside {
    const all = createOutbox(
      {
        door: tenant.door,
        reads: tenant.deliveries,
        render(deliveries) {
          // Subscriptions to context sources have negative numbers.
          const render = deliveries[0]!.sub < 0 ? renderSourceNotification : renderNotification
          const newId = (sent: readonly Delivery[]) => notificationId(tenant.name, sent)
          return render({ tenant, contexts, items, servesPlatform, clock, newId }, deliveries)
        },
        send: sender.send,
        subscriptions: tenant.statistics,
        clock,
        log,
        metrics,
      },
      tenant.name === '' ? {} : { labels: `{tenant="${tenant.name}"}` },
    )
    all.start()
    return Object.freeze({ ...all, close: () => all.close(limits.drainMs.value) })
  }
  return Object.freeze({ send: sender.send, outbox })
}

/**
 * Stable for all attempts at a delivery. Numbers may be reused once all are settled, but not with the same
 * commit time.
 */
function notificationId(tenant: string, deliveries: readonly Delivery[]): string {
  const { sub, at } = deliveries[0]!
  return hash('sha1', `${tenant} ${sub} ${at} ${deliveries.map(({ d }) => d).join(' ')}`)
}
