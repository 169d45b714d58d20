/**
 * The status of an uplink as the gateway reports it over HTTP, and texts for durations and bytes.
 * `uplink-command.ts` prints it.
 */
import { type RunningGateway, refusalOf } from './running-gateway.ts'

/** The reported status of an uplink; --json shows further members. */
export interface UplinkView {
  readonly id: string
  readonly centre: string
  readonly state: string
  readonly waitsFor?: string
  readonly historyWaitsFor?: string
  readonly trouble?: string
  readonly troubleSince?: string
  readonly historyTrouble?: string
  readonly historyTroubleSince?: string
  readonly behindSeconds?: number
  readonly sent?: number
  readonly histories?: number
  readonly refused?: number
  readonly notKept?: number
  readonly waitingObservations?: number
  readonly waitingBytes?: number
  readonly toBeLetGo?: number
  readonly roomSeconds?: number
  readonly evicted?: number
  readonly lastSuccess?: string
  readonly collisions?: readonly {
    readonly origin: string
    readonly entities: number
    readonly entity: string
  }[]
}

export const uplinksPath = '/selvedge/v1/uplinks'

/** @throws peer.refused with the detail of the gateway's response */
export async function call(gateway: RunningGateway, method: string, at: string): Promise<unknown> {
  const answer = await gateway.request(at, { method })
  if (answer.status !== 200 && answer.status !== 202) throw refusalOf(answer, `${method} ${at}`)
  return JSON.parse(answer.text) as unknown
}

/** Texts for the values of `waitsFor`. */
export const waits: Readonly<Record<string, string>> = {
  paused: 'until it is resumed',
  clock: 'until the clock of the gateway is set',
  window: 'for its next window',
  'bytes-per-day': 'for the next day (UTC): the daily bytes are used up',
}

/** Text for `historyWaitsFor`. */
export const historyWaits = 'for later today (UTC): the remaining daily bytes are reserved for current values'

/** A count with its unit in singular or plural. */
export const counted = (count = 0, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`
