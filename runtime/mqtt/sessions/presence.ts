/**
 * The clients that are connected, or about to be: their connection, their session, what they subscribed to and their
 * will. There is one for a client identifier ([MQTT-3.1.4-2]). Without a session, subscriptions end with the connection.
 */
import { limits } from '#base/limits/limits.ts'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { FilterTree, Grant } from '#mqtt/wire/filter-tree.ts'
import type { Session } from './session-queue.ts'
import type { Will } from './wills.ts'

export interface Presence {
  readonly link: Link
  readonly client: string
  /** Set when the client keeps a session. */
  session: Session | undefined
  /** How long its session lives without it, ms. */
  expiryMs: number
  /** The session expiry interval of CONNECT was 0, so DISCONNECT cannot make it live longer. */
  readonly endsWithConnection: boolean
  /** What it subscribed to; undefined for what is about to be granted. */
  readonly filters: Map<string, Grant | undefined>
  will: Will | undefined
}

export function createPresences(tree: FilterTree<Link>) {
  const links = new Set<Link>()
  const byLink = new Map<Link, Presence>()
  const byClient = new Map<string, Presence>()

  return Object.freeze({
    /** Every connection counts, from before its CONNECT. */
    connect: (link: Link): void => void links.add(link),
    add(presence: Presence): void {
      byLink.set(presence.link, presence)
      byClient.set(presence.client, presence)
    },
    of: (link: Link) => byLink.get(link),
    ofClient: (client: string) => byClient.get(client),
    /** Takes a connection out; its subscriptions end unless a session keeps them. */
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
    /** Asks for a place for a filter; false when the client has too many. */
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
