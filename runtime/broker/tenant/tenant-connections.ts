/**
 * The interfaces between a tenant and the parts that send its deliveries and changes. They are connected
 * after every tenant is open.
 */
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { Door } from '#broker/commit/door.ts'
import type { SourceSubscribe } from '#broker/sources/source-subscribe.ts'
import type { CommittedDeliveries } from '#broker/subscriptions/delivery-outbox.ts'
import type { Matcher } from '#broker/subscriptions/matcher.ts'
import type { NotifyingTenant } from '#broker/subscriptions/notification.ts'
import type { NotificationStreams } from '#broker/subscriptions/subscribe.ts'
import type { StatisticsKeeper } from '#broker/subscriptions/subscription-statistics.ts'
import type { UnfoldedBacklog } from '#broker/upkeep/unfolded-backlog.ts'
import type { Deliveries } from '#store/tables/delivery-rows.ts'
import type { UplinkStates } from '#store/tables/uplink-states.ts'
import type { Digests } from './digests.ts'
import type { TenantBroker } from './tenant-broker.ts'

/** The parts of a tenant that senders of deliveries use. */
export interface TenantParts extends NotifyingTenant {
  readonly door: Door
  readonly deliveries: Deliveries
  readonly matcher: Matcher
  /** Subscriptions to context sources by their (negative) number. */
  readonly sources: Pick<SourceSubscribe, 'get'>
  readonly history: TenantBroker['history']
  /** The read interface for followers of the changes. */
  readonly following: ChangeFeed
  readonly backlog: UnfoldedBacklog
  readonly digests: Digests
  readonly uplinkStates: UplinkStates
  /** Statistics of notifications, by number of the subscription. */
  readonly statistics: StatisticsKeeper
}

/** The sender of a tenant's deliveries. */
export interface Outside extends NotificationStreams {
  /** Called with new deliveries after the flush. */
  readonly committed: CommittedDeliveries
  /** Reloads the deliveries of an endpoint after a subscription was deleted or redirected. */
  reread(endpoint: string): void
  close(): Promise<void>
}

/** Opens what sends the deliveries and the changes of a tenant; both send pending ones at once. */
export interface Connections {
  readonly outbox: (tenant: TenantParts) => Outside
  readonly uplinks: (tenant: TenantParts) => { close(): Promise<void> }
}

/** Deliveries stay on disk while there is no sender. */
export const disconnected: Outside = {
  committed() {},
  reread() {},
  listen: () => ({ ready() {}, end() {} }),
  confirm: async () => undefined,
  close: async () => undefined,
}
