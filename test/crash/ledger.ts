/**
 * What the clients of a crash campaign sent and what they were promised, message by message. An entry is
 * acknowledged only by the gateway's own word (PUBACK, 2xx); everything else about it is unknown, and may have
 * happened or not. The ledger believes nothing it reads back: that is the business of the judge.
 */

/** One QoS 1 message, or one HTTP write: a run of consecutive values of its source. */
export interface Message {
  readonly first: number
  readonly count: number
  acknowledged: boolean
}

/** Messages of one client in the order in which they were sent. What is not acknowledged is sent again. */
export interface Sent {
  readonly messages: Message[]
  /** Messages before this one are acknowledged and were found; they are looked at again at the end. */
  settled: number
}

/** An observed attribute. Its values are sequence numbers, and each value has one time, so both can be judged. */
export interface Stream extends Sent {
  readonly entity: string
  readonly attribute: string
  /** Time of value 0, ms. */
  readonly baseMs: number
  /** True for values that are older than some before them. */
  isLate(value: number): boolean
  timeOf(value: number): number
  /** False where no subscription asks for it. */
  readonly isNotified: boolean
}

/** An MQTT topic that no bridge claims; payloads are sequence numbers, and nothing is the empty one. */
export interface Topic extends Sent {
  readonly name: string
  readonly retain: boolean
}

/** Attributes of an entity as key-values; null when it must not be there. */
export type Content = Readonly<Record<string, unknown>> | null

/** What an entity must be: as acknowledged, or as the one write of unknown outcome would make it. */
export interface Expectation {
  acknowledged: Content | undefined
  pending: Content | undefined
  /** Changed since it was last judged. */
  isFresh: boolean
}

export interface Ledger {
  readonly streams: Map<string, Stream>
  readonly topics: readonly Topic[]
  readonly entities: Map<string, Expectation>
  /** Entity writes that were acknowledged. */
  writes: number
  /** Answers that no client can make sense of. */
  readonly oddities: string[]
}

export const spacingMs = 10
const lateEvery = 32
const lateBy = 400

export const simpleResult = 'http://www.w3.org/ns/sosa/hasSimpleResult'

/** With `hasLate` every 32nd value is four seconds late, at a time that no other value has. */
export function createStream(
  entity: string,
  attribute: string,
  options: { baseMs: number; isNotified: boolean; hasLate: boolean },
): Stream {
  const isLate = (value: number): boolean => options.hasLate && value >= lateBy && value % lateEvery === 0
  return {
    entity,
    attribute,
    ...options,
    isLate,
    timeOf: (value) =>
      options.baseMs + (isLate(value) ? (value - lateBy) * spacingMs + 5 : value * spacingMs),
    messages: [],
    settled: 0,
  }
}

/** A window of time that holds every value from `from` on, whichever is late. */
export function windowOf(stream: Stream, from: number, to: number): { fromMs: number; toMs: number } {
  return {
    fromMs: stream.baseMs + Math.max(0, from - lateBy) * spacingMs,
    toMs: stream.baseMs + to * spacingMs,
  }
}

export function nextValue({ messages }: Sent): number {
  const last = messages.at(-1)
  return last === undefined ? 0 : last.first + last.count
}

export function send(sent: Sent, count: number): Message {
  const message: Message = { first: nextValue(sent), count, acknowledged: false }
  sent.messages.push(message)
  return message
}

export function unacknowledged({ messages, settled }: Sent): Message[] {
  return messages.slice(settled).filter(({ acknowledged }) => !acknowledged)
}

/** Everything up to the first message of unknown outcome was judged. */
export function settle(sent: Sent): void {
  const open = sent.messages.findIndex(({ acknowledged }, i) => i >= sent.settled && !acknowledged)
  sent.settled = open === -1 ? sent.messages.length : open
}

export function acknowledgedCount(ledger: Ledger): number {
  let count = ledger.writes
  for (const { messages } of [...ledger.streams.values(), ...ledger.topics]) {
    for (const { acknowledged } of messages) if (acknowledged) count++
  }
  return count
}
