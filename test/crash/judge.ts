/**
 * Compares what was promised with what is shown. Pure: a ledger and evidence in, complaints out, one per message.
 * What was acknowledged has to be there, exactly once where the gateway says so; what was not may be there once.
 */
import type { Instance } from './evidence.ts'
import { type Content, type Expectation, type Message, nextValue, type Stream, type Topic } from './ledger.ts'
import { topicPayload } from './publishers.ts'

/**
 * - lost: acknowledged and not there
 * - duplicated: there more often than it may be
 * - stale: an older value stands where a newer one was acknowledged
 * - invented: there and never sent
 * - disordered: told in another order than it happened
 * - damaged: the database file itself
 */
export type Fault = 'lost' | 'duplicated' | 'stale' | 'invented' | 'disordered' | 'damaged'

export interface Complaint {
  readonly fault: Fault
  readonly text: string
}

/** Instances of a window; messages from `from` on are looked for in it. */
export function judgeHistory(stream: Stream, from: number, instances: readonly Instance[]): Complaint[] {
  const complaints: Complaint[] = []
  const where = `${stream.entity} ${stream.attribute}`
  const times = new Map<number, number>()
  const end = nextValue(stream)
  for (const { value, atMs } of instances) {
    const isSent = typeof value === 'number' && value < end && stream.timeOf(value) === atMs
    if (!isSent) {
      complaints.push({ fault: 'invented', text: `${where} holds ${JSON.stringify(value)} at ${atMs}` })
      continue
    }
    const count = (times.get(value) ?? 0) + 1
    times.set(value, count)
    if (count === 2) complaints.push({ fault: 'duplicated', text: `${where} holds ${value} twice` })
  }
  for (const value of acknowledgedValues(stream.messages, from)) {
    if (!times.has(value)) complaints.push({ fault: 'lost', text: `${where} does not hold ${value}` })
  }
  return complaints
}

/** The current value is the newest acknowledged one, or a newer one that was sent. */
export function judgeCurrent(stream: Stream, current: Instance | undefined): Complaint[] {
  let newest: number | undefined
  for (const value of acknowledgedValues(stream.messages.slice(-128), 0)) {
    if (newest === undefined || stream.timeOf(value) > stream.timeOf(newest)) newest = value
  }
  if (newest === undefined) return []
  const where = `${stream.entity} ${stream.attribute}`
  if (current === undefined) return [{ fault: 'lost', text: `${where} has no value, not ${newest}` }]
  const { value, atMs } = current
  if (typeof value !== 'number' || value >= nextValue(stream) || stream.timeOf(value) !== atMs) {
    return [{ fault: 'invented', text: `${where} is ${JSON.stringify(value)} at ${atMs}` }]
  }
  return atMs >= stream.timeOf(newest)
    ? []
    : [{ fault: 'stale', text: `${where} is ${value}, not ${newest}` }]
}

function* acknowledgedValues(messages: readonly Message[], from: number): Generator<number> {
  for (const { first, count, acknowledged } of messages) {
    if (!acknowledged || first < from) continue
    for (let value = first; value < first + count; value++) yield value
  }
}

export function judgeEntity(id: string, expected: Expectation, seen: Content): Complaint[] {
  const { acknowledged, pending } = expected
  const allowed = [acknowledged, pending].filter((content) => content !== undefined)
  if (acknowledged === undefined) allowed.push(null)
  if (allowed.some((content) => isSame(content, seen))) return []
  const fault = seen === null ? 'lost' : 'stale'
  return [{ fault, text: `${id} is ${brief(seen)}, not ${allowed.map(brief).join(' or ')}` }]
}

function isSame(expected: Content, seen: Content): boolean {
  if (expected === null || seen === null) return expected === seen
  return Object.entries(expected).every(([name, value]) => seen[name] === value)
}

const brief = (content: Content): string => JSON.stringify(content).slice(0, 120)

/** The retained message is the last acknowledged one, or one sent after it. */
export function judgeRetained(topic: Topic, seen: string | undefined): Complaint[] {
  const last = topic.messages.findLastIndex(({ acknowledged }) => acknowledged)
  if (last === -1) return []
  const allowed = topic.messages.slice(last).map(({ first }) => topicPayload(true, first))
  if (allowed.includes(seen ?? '')) return []
  const fault = seen === undefined ? 'lost' : 'stale'
  return [{ fault, text: `${topic.name} retains ${seen}, not ${allowed.join(' or ')}` }]
}

/** Payloads of one topic as they came to the session over all its visits; repeats are allowed. */
export function judgeSession(topic: Topic, from: number, received: readonly string[]): Complaint[] {
  const complaints: Complaint[] = []
  const came = new Set<number>()
  let newest = -1
  for (const value of received.map(Number)) {
    if (!came.has(value) && value < newest) {
      complaints.push({ fault: 'disordered', text: `${topic.name} brought ${value} after ${newest}` })
    }
    if (!(value < nextValue(topic)))
      complaints.push({ fault: 'invented', text: `${topic.name} brought ${value}` })
    came.add(value)
    newest = Math.max(newest, value)
  }
  for (const value of acknowledgedValues(topic.messages, from)) {
    if (!came.has(value)) complaints.push({ fault: 'lost', text: `${topic.name} never brought ${value}` })
  }
  return complaints
}

/** Values that a subscriber was told, in order of arrival; late ones are nobody's news, repeats are allowed. */
export function judgeNotified(stream: Stream, from: number, told: readonly number[]): Complaint[] {
  if (!stream.isNotified) return []
  const complaints: Complaint[] = []
  const came = new Set<number>()
  let newest = -1
  for (const value of told) {
    if (!came.has(value) && value < newest) {
      complaints.push({ fault: 'disordered', text: `${stream.entity}: told ${value} after ${newest}` })
    }
    came.add(value)
    newest = Math.max(newest, value)
  }
  for (const value of acknowledgedValues(stream.messages, from)) {
    if (!came.has(value) && !stream.isLate(value)) {
      complaints.push({ fault: 'lost', text: `${stream.entity}: never told ${value}` })
    }
  }
  return complaints
}
