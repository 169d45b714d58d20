/** An uplink as the gateway tells it to its commands, and the words for what is told. */
import { type RunningGateway, refusalOf } from './running-gateway.ts'

/** What the gateway tells of an uplink; more of it is shown with --json. */
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

/** @throws the gateway's own refusal */
export async function call(gateway: RunningGateway, method: string, at: string): Promise<unknown> {
  const answer = await gateway.ask(at, { method })
  if (answer.status !== 200 && answer.status !== 202) throw refusalOf(answer, `${method} ${at}`)
  return JSON.parse(answer.text) as unknown
}

/** What an uplink waits for that is `waitsFor`. */
export const waits: Readonly<Record<string, string>> = {
  paused: 'until it is resumed',
  clock: 'until the clock of the gateway is set',
  window: 'for its next window',
  'bytes-per-day': 'for the next day (UTC): what may be sent today is sent',
}

/** The same of history alone. */
export const historyWaits = 'for later today (UTC): the rest of the day is kept for current values'

/** So many of something. */
export const counted = (count = 0, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`
