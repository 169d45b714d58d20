/**
 * A broker as its clients see it, by the standard operations of NGSI-LD only (GS CIM 009, 6.5 and 6.19): what an entity is now,
 * and what was observed of an attribute. It says what it is by the addresses at which the known brokers do. Nothing here
 * knows what ought to be.
 */
import { AssertionError } from 'node:assert'
import { type Canonical, canonicalEntity } from './comparing.ts'

export interface BrokerSettings {
  /** Ends in /ngsi-ld/v1. */
  readonly base: string
  readonly headers?: Readonly<Record<string, string>>
}

/** What was observed: value and time (ms). */
export type Observation = readonly [value: unknown, atMs: number]

export interface BrokerView {
  ask(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly text: string }>
  /** Undefined when there is none. */
  entity(id: string): Promise<Canonical | undefined>
  /** All with fromMs < observedAt < toMs, asked for in windows, since brokers answer with few at a time. */
  history(id: string, attribute: string, times: readonly number[]): Promise<Observation[]>
}

const patienceMs = 30_000

export function viewBroker({ base, headers = {} }: BrokerSettings): BrokerView {
  async function ask(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; text: string }> {
    const answer = await fetch(base + path, {
      method,
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(patienceMs),
    })
    return { status: answer.status, text: await answer.text() }
  }

  async function get(path: string): Promise<Record<string, unknown> | undefined> {
    const { status, text } = await ask('GET', path)
    if (status === 404) return undefined
    if (status !== 200)
      throw new AssertionError({ message: `GET ${path} was answered with ${status}: ${text}` })
    return JSON.parse(text) as Record<string, unknown>
  }

  return Object.freeze({
    ask,
    async entity(id) {
      const entity = await get(`/entities/${encodeURIComponent(id)}`)
      return entity && canonicalEntity(entity)
    },
    async history(id, attribute, times) {
      const found: Observation[] = []
      for (let at = 0; at + 1 < times.length; at++) {
        const parameters = new URLSearchParams({
          attrs: attribute,
          timerel: 'between',
          timeAt: new Date(times[at]!).toISOString(),
          endTimeAt: new Date(times[at + 1]!).toISOString(),
          lastN: '1000',
        })
        const entity = await get(`/temporal/entities/${encodeURIComponent(id)}?${parameters}`)
        for (const instance of [entity?.[attribute] ?? []].flat() as Record<string, unknown>[])
          if (instance['value'] !== undefined)
            found.push([instance['value'], Date.parse(String(instance['observedAt']))])
      }
      return found
    },
  } satisfies BrokerView)
}

type Said = Record<string, unknown>

/** Where brokers say what they are, beside the standard, and how to read it. */
const introductions: readonly (readonly [path: string, read: (said: Said) => readonly unknown[]])[] = [
  ['/selvedge/v1/info', ({ product, version }) => ['Selvedge', product && version]],
  ['/q/info', ({ build }) => ['Scorpio', part(build, 'version')]],
  ['/version', (said) => ['Orion-LD', said['orionld version']]],
  ['/actuator/info', ({ build }) => ['Stellio', part(build, 'version')]],
]

const part = (value: unknown, name: string): unknown => (value as Said | undefined)?.[name]

/** What a broker says it is; undefined when it does not. */
export async function introductionOf({ base, headers = {} }: BrokerSettings): Promise<string | undefined> {
  for (const [path, read] of introductions) {
    const answer = await fetch(new URL(path, base), { headers, signal: AbortSignal.timeout(patienceMs) })
    const text = await answer.text()
    if (answer.status !== 200 || !text.startsWith('{')) continue
    const words = read(JSON.parse(text) as Said)
    if (words.every((word) => typeof word === 'string')) return words.join(' ')
  }
  return undefined
}
