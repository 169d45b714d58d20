/**
 * The HTTP side of the traffic: four clients that each write one thing after the other and repeat a write whose
 * answer never came. A write is acknowledged by its 2xx only; 404 and 409 acknowledge a repeat whose first try had
 * been carried out.
 */
import type { Content, Expectation, Ledger } from './ledger.ts'
import { type Message, type Stream, send, unacknowledged } from './ledger.ts'
import { pause } from './publishers.ts'

interface Write {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  /** The answer that says that an earlier try of the same write was carried out. */
  readonly repeated?: number
  acknowledge(): void
}

/** A client; `next` gives the same write again until it is acknowledged. */
export interface Writer {
  readonly pauseMs: number
  next(): Write
}

const entities = '/ngsi-ld/v1/entities'
export const property = (value: unknown): object => ({ type: 'Property', value })

export const meterId = 'urn:ngsi-ld:Meter:crash'
export const controllerId = 'urn:ngsi-ld:Controller:crash'

/** Measures an attribute of its own entity, with times. */
export function meter(stream: Stream, pauseMs: number): Writer {
  return {
    pauseMs,
    next() {
      const message: Message = unacknowledged(stream)[0] ?? send(stream, 1)
      const observedAt = new Date(stream.timeOf(message.first)).toISOString()
      return {
        method: 'PATCH',
        path: `${entities}/${stream.entity}/attrs`,
        body: { [stream.attribute]: { ...property(message.first), observedAt } },
        acknowledge() {
          message.acknowledged = true
        },
      }
    },
  }
}

/** Makes one entity after the other. */
export function registrar(ledger: Ledger, pauseMs: number): Writer {
  let number = 0
  return repeating(pauseMs, () => {
    const id = `urn:ngsi-ld:Item:${++number}`
    const content = { name: `item ${number}`, number }
    const create = {
      method: 'POST',
      path: entities,
      body: draft(id, 'Item', content),
      repeated: 409,
    } as const
    return expecting(ledger, id, content, create)
  })
}

/** Sets an attribute without a time, now and then with much text beside it. */
export function operator(ledger: Ledger, pauseMs: number, textLength: () => number): Writer {
  let number = 0
  return repeating(pauseMs, () => {
    const content = { setpoint: ++number, note: 'x'.repeat(textLength()) }
    const body = { setpoint: property(content.setpoint), note: property(content.note) }
    const path = `${entities}/${controllerId}/attrs`
    return expecting(ledger, controllerId, content, { method: 'PATCH', path, body })
  })
}

/** Makes things, adds to them, changes them, and deletes them again. */
export function changer(ledger: Ledger, pauseMs: number): Writer {
  let step = 0
  return repeating(pauseMs, () => {
    const number = Math.floor(step / 4)
    const id = `urn:ngsi-ld:Thing:${number}`
    const write = thingWrites[step++ % 4]!(id, number)
    const target = write.content === null ? `urn:ngsi-ld:Thing:${Math.max(0, number - 3)}` : id
    return expecting(ledger, target, write.content, {
      ...write,
      path: write.content === null ? `${entities}/${target}` : write.path,
    })
  })
}

type ThingWrite = Omit<Write, 'acknowledge'> & { readonly content: Content }

const thingWrites: readonly ((id: string, number: number) => ThingWrite)[] = [
  (id, number) => ({
    method: 'POST',
    path: entities,
    body: draft(id, 'Thing', { size: number }),
    content: { size: number },
    repeated: 409,
  }),
  (id, number) => ({
    method: 'POST',
    path: `${entities}/${id}/attrs`,
    body: { colour: property(`colour ${number}`) },
    content: { size: number, colour: `colour ${number}` },
  }),
  (id, number) => ({
    method: 'PATCH',
    path: `${entities}/${id}/attrs/size`,
    body: property(number + 1),
    content: { size: number + 1, colour: `colour ${number}` },
  }),
  () => ({ method: 'DELETE', path: '', content: null, repeated: 404 }),
]

export const draft = (id: string, type: string, content: Readonly<Record<string, unknown>>): object => ({
  id,
  type,
  ...Object.fromEntries(Object.entries(content).map(([name, value]) => [name, property(value)])),
})

/** A writer that keeps at one write until it is acknowledged. */
function repeating(pauseMs: number, make: () => Write): Writer {
  let current: Write | undefined
  return {
    pauseMs,
    next() {
      if (current !== undefined) return current
      const write = make()
      current = {
        ...write,
        acknowledge() {
          current = undefined
          write.acknowledge()
        },
      }
      return current
    },
  }
}

/** Notes in the ledger what a write will have made of an entity. */
function expecting(ledger: Ledger, id: string, content: Content, write: Omit<Write, 'acknowledge'>): Write {
  const expectation: Expectation = ledger.entities.get(id) ?? {
    acknowledged: undefined,
    pending: undefined,
    isFresh: true,
  }
  ledger.entities.set(id, expectation)
  expectation.pending = content
  expectation.isFresh = true
  return {
    ...write,
    acknowledge() {
      expectation.acknowledged = content
      expectation.pending = undefined
      expectation.isFresh = true
    },
  }
}

/** Writes until the connection is lost or `stop` settles. */
export async function write(url: string, writer: Writer, ledger: Ledger, stop: Promise<void>): Promise<void> {
  let isStopped = false
  void stop.then(() => {
    isStopped = true
  })
  while (!isStopped) {
    const one = writer.next()
    const status = await request(url, one)
    if (status === undefined) return
    if ((status >= 200 && status < 300) || status === one.repeated) {
      one.acknowledge()
      ledger.writes++
    } else if (status !== 503) {
      ledger.oddities.push(`${one.method} ${one.path} was answered with ${status}`)
      return
    }
    await Promise.race([stop, pause(writer.pauseMs)])
  }
}

async function request(url: string, { method, path, body }: Write): Promise<number | undefined> {
  try {
    const answer = await fetch(url + path, {
      method,
      headers: { 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    await answer.arrayBuffer()
    return answer.status
  } catch {
    // No answer: what became of the write is unknown.
    return undefined
  }
}
