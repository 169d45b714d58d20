/**
 * The connections of a gateway with other brokers as text lines, from /selvedge/v1/downward and
 * /selvedge/v1/uplinks. A gateway that does not report them has no lines.
 */
import { parsedJson } from '#ngsi-ld/values/json.ts'

/** An uplink, a registration, a tunnel, or copies. */
export interface BrokerConnection {
  readonly state?: string
  readonly name?: string
  readonly id?: string
  readonly alias?: string
  readonly centre?: string
  readonly reason?: string
}

/** Connections by kind. */
export type BrokerConnections = Readonly<Record<string, readonly BrokerConnection[]>>

export function connectionsOf(text: string): BrokerConnections {
  const members = Object.entries(parsedJson(text) ?? {})
  return Object.fromEntries(members.filter(([, all]) => Array.isArray(all))) as BrokerConnections
}

/** @param text a list of uplinks. */
export function uplinkConnectionsOf(text: string): BrokerConnections {
  const list = parsedJson(text)
  if (!Array.isArray(list)) return {}
  const uplinks = list as (BrokerConnection & { readonly trouble?: string })[]
  return {
    uplinks: uplinks.map(({ trouble, ...one }) =>
      trouble === undefined ? one : { ...one, reason: trouble },
    ),
  }
}

const kinds: Readonly<Record<string, string>> = {
  uplinks: 'Uplink',
  registrations: 'Registration',
  tunnels: 'Tunnel',
  copies: 'Copies',
  connected: 'Tunnel from',
}

/** Rows of two columns. */
export function connectionRows(connections: BrokerConnections): [string, string][] {
  return Object.entries(connections).flatMap(([kind, all]) =>
    all.map(({ state = 'open', reason, centre, name, id, alias }): [string, string] => {
      const how = reason === undefined ? state : `${state}: ${reason}`
      const what = [name ?? id ?? alias, centre, how].filter((part) => part !== undefined)
      return [kinds[kind] ?? kind, what.join(', ')]
    }),
  )
}
