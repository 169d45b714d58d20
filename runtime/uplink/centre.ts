/**
 * The other broker, asked by the ordinary operations of NGSI-LD (GS CIM 009, clause 6), so that any broker can be one. It says
 * what became of each thing that was sent: taken, refused with a reason, or not now. It never throws for what the
 * other side does.
 */
import { gzipSync } from 'node:zlib'
import { limits } from '#base/limits.ts'
import type { Peer, PeerAnswer } from '#federation/peer.ts'
import type { AttributeInstance } from '#ngsi-ld/entity.ts'
import { type Attributes, bodyOf, type Head, type Layer, type Step } from './plan.ts'

/** Something the other side will not take, as it is. */
export interface Refusal {
  readonly step: Step
  readonly reason: string
}

export type Outcome =
  | { readonly kind: 'done'; readonly refused: readonly Refusal[]; readonly skipped: number }
  /** Not now: nobody can be reached, or asks to wait. What was sent is to be sent again. */
  | {
      readonly kind: 'later'
      readonly reason: string
      readonly isUnreachable: boolean
      readonly retryAfterMs?: number | undefined
    }

export interface CentreSettings {
  /** Ends in /ngsi-ld/v1. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  readonly tenant?: string | undefined
  /** What this gateway calls itself in Via. */
  readonly alias: string
  readonly gzip: boolean
}

export interface Centre {
  /** Sends one layer; its steps may be cut into several requests. */
  send(layer: Layer): Promise<Outcome>
  /** One request of any kind, for tests of the way and for comparing. */
  ask(method: string, path: string, body?: unknown): Promise<PeerAnswer>
  /** Bytes handed to the connection so far. */
  sentBytes(): number
}

/** Client errors that time or a change over there heals. */
const healing = new Set([401, 403, 404, 405, 408, 410, 425, 429])
const isTransient = (status: number): boolean => status >= 500 || status < 200 || healing.has(status)

export function createCentre(peer: Peer, settings: CentreSettings): Centre {
  let bytes = 0
  let gzips = settings.gzip
  /** True once the other side was seen not to keep histories. */
  let hasNoHistory = false
  let isOneOfUs: boolean | undefined

  async function ask(method: string, path: string, body?: unknown): Promise<PeerAnswer> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers: Record<string, string> = {
      accept: 'application/json',
      via: `1.1 ${settings.alias}`,
      ...settings.headers,
    }
    if (settings.tenant !== undefined) headers['ngsild-tenant'] = settings.tenant
    if (text !== undefined) headers['content-type'] = 'application/json'
    const isPacked = gzips && text !== undefined && text.length > limits.uplinkGzipBytesMin.value
    const sent = isPacked ? gzipSync(text, { level: 1 }) : text
    if (isPacked) headers['content-encoding'] = 'gzip'
    bytes += sent === undefined ? 0 : sent.length
    const url = settings.base + path
    const timeoutMs = limits.uplinkTimeoutMs.value
    const answer = await peer.exchange({ method, url, headers, body: sent, timeoutMs })
    if (!isPacked || 'failure' in answer || (answer.status !== 415 && answer.status !== 400)) return answer
    gzips = false
    return ask(method, path, body)
  }

  async function put(steps: readonly Step[]): Promise<Outcome> {
    const bodies = steps.map((step) => bodyOf(step.entity, attributesOf(step), 'current'))
    const answer = await ask('POST', '/entityOperations/upsert?options=update', bodies)
    return settle(steps, answer, put)
  }

  async function remove(steps: readonly Step[]): Promise<Outcome> {
    const ids = steps.map(({ entity }) => entity.id)
    const outcome = await settle(steps, await ask('POST', '/entityOperations/delete', ids), remove)
    if (outcome.kind === 'later') return outcome
    return { ...outcome, refused: outcome.refused.filter(({ reason }) => !reason.startsWith('404')) }
  }

  /** Other brokers know no times of what was not observed. */
  async function past(step: Step): Promise<Outcome> {
    if (hasNoHistory) return done([], 1)
    const isOurs = await isSelvedge()
    if (isOurs === undefined)
      return { kind: 'later', reason: 'it does not say what it is', isUnreachable: true }
    const { id, type } = step.entity
    const attributes = isOurs ? attributesOf(step) : observedOf(attributesOf(step))
    if (attributes.size === 0) return done([], 1)
    const { id: _, type: __, ...fragment } = bodyOf(step.entity, attributes, 'temporal')
    const create = (): Promise<PeerAnswer> =>
      ask('POST', `/temporal/entities${isOurs ? '?options=sysAttrs' : ''}`, { id, type, ...fragment })
    let answer = isOurs
      ? await create()
      : await ask('POST', `/temporal/entities/${encodeURIComponent(id)}/attrs`, fragment)
    if ('status' in answer && answer.status === 404 && !isOurs) answer = await create()
    if ('status' in answer && [404, 405, 501].includes(answer.status)) {
      hasNoHistory = true
      return done([], 1)
    }
    return settle([step], answer, () => past(step))
  }

  /** Whether the other side is a gateway like this one; undefined when it cannot be told now. */
  async function isSelvedge(): Promise<boolean | undefined> {
    if (isOneOfUs !== undefined) return isOneOfUs
    const url = new URL('/selvedge/v1/info', settings.base).href
    const timeoutMs = limits.uplinkTimeoutMs.value
    const answer = await peer.exchange({ method: 'GET', url, headers: settings.headers, timeoutMs })
    if ('failure' in answer || answer.status >= 500) return undefined
    isOneOfUs = answer.status === 200 && answer.text.includes('selvedge')
    return isOneOfUs
  }

  async function drop(step: Step): Promise<Outcome> {
    if (step.kind !== 'drop') return done()
    const { entity, name, dataset } = step
    const query = dataset === '' ? '' : `?datasetId=${encodeURIComponent(dataset)}`
    const path = `/entities/${encodeURIComponent(entity.id)}/attrs/${encodeURIComponent(name)}${query}`
    const answer = await ask('DELETE', path)
    return 'status' in answer && answer.status === 404 ? done() : settle([step], answer, () => drop(step))
  }

  return Object.freeze({
    ask,
    sentBytes: () => bytes,
    async send({ kind, steps }) {
      if (kind === 'put') return inTurn(partsOf(steps), put)
      if (kind === 'remove') return inTurn(partsOf(steps), remove)
      return inTurn(kind === 'past' ? steps.flatMap(pastParts) : steps, kind === 'past' ? past : drop)
    },
  } satisfies Centre)
}

const attributesOf = (step: Step): Attributes =>
  step.kind === 'put' || step.kind === 'past' ? step.attributes : new Map()

function observedOf(attributes: Attributes): Attributes {
  const observed = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of attributes) {
    const some = instances.filter(({ observedAt }) => observedAt !== undefined)
    if (some.length > 0) observed.set(name, some)
  }
  return observed
}

const done = (refused: readonly Refusal[] = [], skipped = 0): Outcome => ({ kind: 'done', refused, skipped })

/** One after the other, until one is not taken now. */
async function inTurn<T>(all: readonly T[], send: (one: T) => Promise<Outcome>): Promise<Outcome> {
  const refused: Refusal[] = []
  let skipped = 0
  for (const one of all) {
    const outcome = await send(one)
    if (outcome.kind === 'later') return outcome
    refused.push(...outcome.refused)
    skipped += outcome.skipped
  }
  return done(refused, skipped)
}

/**
 * What an answer says of each of the steps that were sent together. Where all are refused together nobody knows which is at
 * fault, so each half is sent anew.
 */
async function settle(
  steps: readonly Step[],
  answer: PeerAnswer,
  again: (steps: readonly Step[]) => Promise<Outcome>,
): Promise<Outcome> {
  if ('failure' in answer) return { kind: 'later', reason: answer.reason, isUnreachable: true }
  const { status, text } = answer
  if (status === 207) return settleEach(steps, text)
  if (status >= 200 && status < 300) return done()
  if (isTransient(status)) {
    const wait = Number(answer.headers['retry-after'])
    const retryAfterMs = Number.isFinite(wait) ? wait * 1000 : undefined
    return {
      kind: 'later',
      reason: `answered ${status} ${detailOf(text)}`,
      isUnreachable: false,
      retryAfterMs,
    }
  }
  if (steps.length === 1) return done([{ step: steps[0]!, reason: `${status} ${detailOf(text)}` }])
  const half = Math.ceil(steps.length / 2)
  return inTurn([steps.slice(0, half), steps.slice(half)], again)
}

interface BatchError {
  readonly entityId?: string
  readonly error?: { readonly status?: number; readonly title?: string; readonly detail?: unknown }
}

/** The outcome per item (GS CIM 009, 5.2.16). */
function settleEach(steps: readonly Step[], text: string): Outcome {
  let errors: readonly BatchError[] = []
  try {
    errors = (JSON.parse(text) as { errors?: readonly BatchError[] }).errors ?? []
  } catch {
    return { kind: 'later', reason: 'answered 207 without a body that can be read', isUnreachable: false }
  }
  const failed = new Map(errors.map((one) => [one.entityId, one.error]))
  const heals = errors.find(({ error }) => isTransient(error?.status ?? 400) && error?.status !== 404)
  if (heals !== undefined)
    return { kind: 'later', reason: `${heals.entityId}: ${reasonOf(heals.error)}`, isUnreachable: false }
  return done(
    steps
      .filter(({ entity }) => failed.has(entity.id))
      .map((step) => ({ step, reason: reasonOf(failed.get(step.entity.id)) })),
  )
}

const reasonOf = (error: BatchError['error']): string =>
  [error?.status, error?.title, error?.detail]
    .filter((part) => part !== undefined)
    .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
    .join(' ')

function detailOf(text: string): string {
  try {
    const { title, detail } = JSON.parse(text) as { title?: string; detail?: string }
    return [title, detail].filter((part) => typeof part === 'string').join(': ')
  } catch {
    return text.slice(0, 200)
  }
}

/** Steps in parts that make requests of bounded length. */
function partsOf(steps: readonly Step[]): readonly (readonly Step[])[] {
  const parts: Step[][] = []
  let room = 0
  for (const step of steps) {
    const size = sizeOf(step)
    if (parts.length === 0 || room < size || parts.at(-1)!.length >= limits.uplinkEntitiesPerRequest.value) {
      parts.push([])
      room = limits.uplinkRequestBytes.value
    }
    room -= size
    parts.at(-1)!.push(step)
  }
  return parts
}

/** About the bytes of a step in a request. */
function sizeOf(step: Step): number {
  let size = step.entity.id.length + 64
  for (const [name, instances] of attributesOf(step))
    size += name.length + instances.reduce((sum, one) => sum + roughly(one), 0)
  return size
}

/** A long value is measured; a number is not. */
const roughly = (instance: { readonly value?: unknown }): number =>
  typeof instance.value === 'number' ? 120 : JSON.stringify(instance).length

/** A long history of one entity in several requests. */
function pastParts(step: Step): readonly Step[] {
  if (step.kind !== 'past') return [step]
  const most = limits.uplinkInstancesPerRequest.value
  const parts: {
    entity: Head
    attributes: Map<string, Attributes extends ReadonlyMap<string, infer I> ? I : never>
  }[] = []
  let room = 0
  for (const [name, instances] of step.attributes) {
    for (let from = 0; from < instances.length; ) {
      if (room <= 0) {
        parts.push({ entity: step.entity, attributes: new Map() })
        room = most
      }
      const some = instances.slice(from, from + room)
      parts.at(-1)!.attributes.set(name, some)
      from += some.length
      room -= some.length
    }
  }
  return parts.map((part) => ({ kind: 'past', ...part }))
}
