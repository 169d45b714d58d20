/**
 * The clients that are connected: what the broker library knows of a connection (the client) beside what we know of
 * it (the link, its subscriptions, its will). Without a session, subscriptions end with the connection.
 */
import type { Client } from 'aedes'
import { limits } from '#base/limits.ts'
import type { FilterTree } from './filter-tree.ts'
import type { Link } from './link.ts'
import type { Session } from './session-queue.ts'
import type { Will } from './wills.ts'

export interface Presence {
  readonly link: Link
  readonly client: Client
  /** Set when the client keeps a session. */
  session: Session | undefined
  /** Filters it asked for, granted or about to be. */
  readonly filters: Set<string>
  will: Will | undefined
  /** CONNACK return code that its CONNECT asks for by itself; 0 for none. */
  refusal: number
}

export function createPresences(tree: FilterTree<Link>) {
  const byLink = new Map<Link, Presence>()
  const byClient = new WeakMap<Client, Presence>()

  return Object.freeze({
    add(link: Link, client: Client): void {
      const presence: Presence = {
        link,
        client,
        session: undefined,
        filters: new Set(),
        will: undefined,
        refusal: 0,
      }
      byLink.set(link, presence)
      byClient.set(client, presence)
    },
    of: (client: Client) => byClient.get(client),
    ofLink: (link: Link) => byLink.get(link),
    /** Takes a connection out; its subscriptions end unless a session keeps them. */
    remove(link: Link): Presence | undefined {
      const presence = byLink.get(link)
      byLink.delete(link)
      if (presence !== undefined && presence.session === undefined) {
        for (const filter of presence.filters) tree.remove(filter, link)
      }
      return presence
    },
    /** Asks for a place for a filter; false when the client has too many. */
    reserve({ filters }: Presence, filter: string): boolean {
      if (filters.has(filter)) return true
      if (filters.size >= limits.subscriptionsPerClientMax.value) return false
      filters.add(filter)
      return true
    },
    subscribe({ link, session }: Presence, filter: string, qos: number): void {
      if (session === undefined) tree.add(filter, link, qos)
    },
    unsubscribe({ link, session, filters }: Presence, filter: string): void {
      filters.delete(filter)
      if (session === undefined) tree.remove(filter, link)
    },
    all: () => byLink.values(),
    links: () => byLink.keys(),
    count: () => byLink.size,
  })
}
