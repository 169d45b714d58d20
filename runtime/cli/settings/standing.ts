/**
 * The connections of a gateway with other brokers as text lines, from /selvedge/v1/downward and
 * /selvedge/v1/uplinks. A gateway that does not report them has no lines.
 */
import { parsedJson } from '#ngsi-ld/values/json.ts'

/** An uplink, a registration, a tunnel, or copies. */
export interface Standing {
  readonly state?: string
  readonly name?: string
  readonly id?: string
  readonly alias?: string
  readonly centre?: string
  readonly reason?: string
}

/** Connections by kind. */
export type Standings = Readonly<Record<string, readonly Standing[]>>

export function standingsOf(text: string): Standings {
  const members = Object.entries(parsedJson(text) ?? {})
  return Object.fromEntries(members.filter(([, all]) => Array.isArray(all))) as Standings
}

/** @param text a list of uplinks. */
export function uplinkStandingsOf(text: string): Standings {
  const list = parsedJson(text)
  if (!Array.isArray(list)) return {}
  const uplinks = list as (Standing & { readonly trouble?: string })[]
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
export function standingRows(standings: Standings): [string, string][] {
  return Object.entries(standings).flatMap(([kind, all]) =>
    all.map(({ state = 'open', reason, centre, name, id, alias }): [string, string] => {
      const how = reason === undefined ? state : `${state}: ${reason}`
      const what = [name ?? id ?? alias, centre, how].filter((part) => part !== undefined)
      return [kinds[kind] ?? kind, what.join(', ')]
    }),
  )
}
