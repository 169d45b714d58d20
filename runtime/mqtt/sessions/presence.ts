/**
 * The connected and connecting clients: their connection, session, subscriptions and will. There is one per
 * client identifier ([MQTT-3.1.4-2]). Without a session, subscriptions end with the connection.
 */
import { limits } from '#base/limits/limits.ts'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { FilterTree, Grant } from '#mqtt/wire/filter-tree.ts'
import type { Session } from './session-queue.ts'
import type { Will } from './wills.ts'

export interface Presence {
  readonly link: Link
  readonly client: string
  /** Set when the client has a session. */
  session: Session | undefined
  /** How long its session lives after the connection, ms. */
  expiryMs: number
  /** The session expiry interval of CONNECT was 0, so DISCONNECT cannot extend it. */
  readonly endsWithConnection: boolean
  /** Its subscriptions; undefined for one that is about to be granted. */
  readonly filters: Map<string, Grant | undefined>
  will: Will | undefined
}

export function createPresences(tree: FilterTree<Link>) {
  const links = new Set<Link>()
  const byLink = new Map<Link, Presence>()
  const byClient = new Map<string, Presence>()

  return Object.freeze({
    /** Counts a connection even before its CONNECT. */
    connect: (link: Link): void => void links.add(link),
    add(presence: Presence): void {
      byLink.set(presence.link, presence)
      byClient.set(presence.client, presence)
    },
    of: (link: Link) => byLink.get(link),
    ofClient: (client: string) => byClient.get(client),
    /** Removes a connection; its subscriptions end unless a session keeps them. */
    remove(link: Link): Presence | undefined {
      links.delete(link)
      const presence = byLink.get(link)
      if (presence === undefined) return undefined
      byLink.delete(link)
      if (byClient.get(presence.client) === presence) byClient.delete(presence.client)
      if (presence.session === undefined)
        for (const filter of presence.filters.keys()) tree.remove(filter, link)
      return presence
    },
    /** Reserves a slot for a filter; false when the client has too many. */
    reserve({ filters }: Presence, filter: string): boolean {
      if (filters.has(filter)) return true
      if (filters.size >= limits.subscriptionsPerClientMax.value) return false
      filters.set(filter, undefined)
      return true
    },
    subscribe({ link, session, filters }: Presence, filter: string, grant: Grant): void {
      filters.set(filter, grant)
      if (session === undefined) tree.add(filter, link, grant)
    },
    unsubscribe({ link, session, filters }: Presence, filter: string): void {
      filters.delete(filter)
      if (session === undefined) tree.remove(filter, link)
    },
    links: () => links.values(),
    count: () => links.size,
  })
}

export type Presences = ReturnType<typeof createPresences>
