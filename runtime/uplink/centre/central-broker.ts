/**
 * The other broker, asked by the ordinary operations of NGSI-LD (GS CIM 009, clause 6), so that any broker can be one. It says
 * what became of each thing that was sent: taken, refused with a reason, or not now. It never throws for what the
 * other side does.
 */
import { promisify } from 'node:util'
import { gzip, type ZlibOptions } from 'node:zlib'
import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Peer, PeerAnswer } from '#federation/peer.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Stated, statedHeader } from '#ngsi-ld/federation/uplink-statements.ts'
import { viaHeader } from '#ngsi-ld/federation/via.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import {
  brokerQuestion,
  createSeeAbsent,
  isList,
  isTooLarge,
  type Seen,
  saysAbsent,
  saysBarred,
  saysNoTenant,
} from '#uplink/connection/absence.ts'
import { withoutTime } from '#uplink/steps/change-steps.ts'
import { idParts } from '#uplink/steps/id-parts.ts'
import {
  type Attributes,
  bodyOf,
  type Came,
  instanceCount,
  type Layer,
  type Step,
} from '#uplink/steps/step-plan.ts'
import { questionFor, withoutKnown } from './dedupe-history.ts'
import { aheadBy, askOthers, writtenSince } from './foreign-attributes.ts'
import { atOnce, createSettle, done, inTurn, isRead, isTransient, later, type Outcome } from './outcome.ts'
import { createRemoval, type OthersOf } from './removal.ts'

export interface CentreSettings {
  /** Ends in /ngsi-ld/v1. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  readonly tenant?: string | undefined
  /** What this gateway calls itself in Via. */
  readonly alias: string
  /**
   * What is sent as past becomes current where it is newer than what is there: of an entity that met a selection by values for
   * a while, the last of these is current over there.
   */
  readonly pastMayBecomeCurrent?: boolean
}

export interface Centre {
  /**
   * Sends one layer; its steps may be cut into several requests. `heldMs` is how long what is put may wait for its turn before the
   * first of them; then nothing of it was sent.
   */
  send(layer: Layer, heldMs?: number): Promise<Outcome>
  /** One request of any kind, for tests of the way and for comparing. */
  ask(method: string, path: string, body?: unknown, came?: Came): Promise<PeerAnswer>
  /** What a gateway like this one tells beside NGSI-LD; `path` is below its root. */
  look(path: string): Promise<PeerAnswer>
  /** The answer to a question, and whether it is believed where it says that there is nothing of the kind. */
  see(question: () => Promise<PeerAnswer>): Promise<Seen>
  /** The same of what a gateway like this one tells; whoever bars the way to it says that there is none. */
  seeOwn(path: string): Promise<Seen>
  /** What it calls itself in Via, as far as it says; asked anew each time. */
  pseudonym(): Promise<{ readonly name: string | undefined } | (Outcome & { kind: 'later' })>
  /** Whether it is a gateway like this one; undefined when it cannot be told now. */
  isSelvedge(): Promise<boolean | undefined>
  /** Bytes handed to the connection so far. */
  sentBytes(): number
}

type Asked = [
  method: string,
  path: string,
  body?: unknown,
  came?: Came | undefined,
  how?: { readonly heldMs?: number | undefined; readonly states?: readonly Stated[] | undefined } | undefined,
]

const pack = promisify<string, ZlibOptions, Buffer>(gzip)

export function createCentre(peer: Peer, settings: CentreSettings, clock: Clock): Centre {
  /** One after the other: many at once would take the core of a small board from who decides. */
  const turn = createSemaphore()
  let bytes = 0
  /** Whether bodies go as gzip; undefined until it is known whether they are understood. */
  let packs: boolean | undefined
  /** When the other side was seen not to keep histories. */
  let noHistorySeen = Number.NEGATIVE_INFINITY
  /** Whether it is a gateway like this one, and when that was seen. */
  let kin: { readonly is: boolean; readonly seen: number } | undefined
  /** Why it could not be asked last. */
  let silence = { reason: '', isUnreachable: false }

  async function ask(...[method, path, body, came = {}, how = {}]: Asked): Promise<PeerAnswer> {
    const { heldMs, states } = how
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers: Record<string, string> = {
      accept: 'application/json',
      Via: viaHeader(came.heard, settings.alias),
      ...settings.headers,
    }
    if (settings.tenant !== undefined) headers['ngsild-tenant'] = settings.tenant
    if (text !== undefined) headers['content-type'] = 'application/json'
    if (states !== undefined) headers[statedHeader] = states.join()
    const isPacked = packs !== false && text !== undefined && text.length > limits.uplinkGzipBytesMin.value
    // Who does not know of it may answer anything at all, to all that was sent before that was known.
    const isOpen = packs === undefined
    const sent = isPacked ? await turn(() => pack(text, { level: 1 })) : text
    if (isPacked) headers['content-encoding'] = 'gzip'
    if (sent !== undefined) bytes += Buffer.byteLength(sent)
    const url = settings.base + path
    const timeoutMs = limits.uplinkTimeoutMs.value
    const answer = await peer.exchange({ method, url, headers, body: sent, timeoutMs, heldMs })
    if (!isPacked || 'failure' in answer) return answer
    if (isRead(answer)) packs = true
    if (answer.status !== 415 && (!isOpen || packs === true || answer.status === 429)) return answer
    packs = false
    const plain = await ask(method, path, body, came, { states })
    if (isOpen && !('failure' in plain) && plain.status >= 300 && answer.status !== 415) packs = undefined
    return plain
  }

  const seesBroker = async (): Promise<boolean> => isList(await ask('GET', brokerQuestion))
  const settle = createSettle(clock, seesBroker)
  const seeAbsent = createSeeAbsent(seesBroker)
  const isOld = (seen: number): boolean => clock.monotonic() - seen >= limits.uplinkRecheckMs.value

  const unknown = (): Outcome & { kind: 'later' } => ({
    ...{ kind: 'later', ...silence, reason: `it does not say what it is: ${silence.reason}` },
  })

  async function put(steps: readonly Step[], heldMs?: number): Promise<Outcome> {
    // Who does not say just now what it is may be one: others are to ignore what is meant for it (4.8).
    const isOurs = (await isSelvedge()) !== false
    const { stating = [], others = [] } = Object.groupBy(steps, ({ entity }) =>
      isOurs && entity.statesTypes === true ? 'stating' : 'others',
    )
    if (stating.length > 0 && others.length > 0) return inTurn([others, stating], (some) => put(some, heldMs))
    const bodies = steps.map((step) => {
      const attributes = isOurs ? attributesOf(step) : withoutTimes(attributesOf(step))
      return bodyOf(step.entity, attributes, 'current')
    })
    const states: readonly Stated[] | undefined = !isOurs
      ? undefined
      : stating.length > 0
        ? ['times', 'types']
        : ['times']
    const path = '/entityOperations/upsert?options=update'
    const answer = await ask('POST', path, bodies, steps[0], { heldMs, states })
    return settle(steps, answer, (some) => put(some))
  }

  async function past(step: Step): Promise<Outcome> {
    const isOurs = await isSelvedge()
    if (isOurs === undefined) return unknown()
    if (isOurs && attributesOf(step).size === 0) return done([], 1)
    const states = settings.pastMayBecomeCurrent === true ? undefined : (['past'] as const)
    if (isOurs) return settle([step], await createPast(step, '?options=sysAttrs', states), () => past(step))
    if (!isOld(noHistorySeen)) return done([], 1)
    // Other brokers know no times of what was not observed.
    const attributes = observedOf(attributesOf(step))
    if (step.kind !== 'past' || attributes.size === 0) return done([], 1)
    return inTurn(pastParts({ ...step, attributes }, limits.uplinkInstancesPerQuery.value), pastElsewhere)
  }

  /** What is told twice would be twice in the history of another broker. */
  async function pastElsewhere(step: Step): Promise<Outcome> {
    const { id } = step.entity
    const { answer, isBelieved } = await seeAbsent(() => ask('GET', questionFor(id, attributesOf(step))))
    const count = instanceCount(step)
    if (isTooLarge(answer) && count > 1) return inTurn(pastParts(step, Math.ceil(count / 2)), pastElsewhere)
    if (isTooLarge(answer)) return done([{ step, reason: answer.reason }])
    if ('failure' in answer || (isTransient(answer.status) && !isBelieved))
      return settle([step], answer, () => past(step))
    const { status, text } = answer
    if (status < 300 && !isObject(parsedJson(text)))
      return later(`answered ${status} to a question for a history, and not with one`)
    const attributes = status === 200 ? withoutKnown(attributesOf(step), text) : attributesOf(step)
    if (attributes.size === 0) return done()
    return tellPast(step, attributes, async () => {
      const { id: _, type: __, scope: ___, ...fragment } = bodyOf(step.entity, attributes, 'temporal')
      const told = await ask('POST', `/temporal/entities/${encodeURIComponent(id)}/attrs`, fragment, step)
      return 'status' in told && saysAbsent(told) ? createPast({ ...step, attributes } as Step, '') : told
    })
  }

  function createPast(step: Step, query: string, states?: readonly Stated[]): Promise<PeerAnswer> {
    const body = bodyOf(step.entity, attributesOf(step), 'temporal')
    return ask('POST', `/temporal/entities${query}`, body, step, { states })
  }

  async function tellPast(
    step: Step,
    attributes: Attributes,
    tell: () => Promise<PeerAnswer>,
  ): Promise<Outcome> {
    if (attributes.size === 0) return done([], 1)
    const { answer, isBelieved } = await seeAbsent(tell)
    if (isBelieved) {
      noHistorySeen = clock.monotonic()
      return done([], 1)
    }
    return settle([step], answer, () => past(step))
  }

  /** Whoever keeps no histories, or none of this, has nothing to erase. */
  async function erase(step: Step): Promise<Outcome> {
    if (step.kind !== 'erase') return done()
    const { entity, name, dataset } = step
    const which = dataset === '*' ? 'deleteAll=true' : `datasetId=${encodeURIComponent(dataset)}`
    const path = `/temporal/entities/${encodeURIComponent(entity.id)}/attrs/${encodeURIComponent(name)}`
    const { answer, isBelieved } = await seeAbsent(() =>
      ask('DELETE', dataset === '' ? path : `${path}?${which}`, undefined, step),
    )
    return isBelieved || saysNoTenant(answer) ? done() : settle([step], answer, () => erase(step))
  }

  async function isSelvedge(): Promise<boolean | undefined> {
    if (kin !== undefined && !isOld(kin.seen)) return kin.is
    const url = new URL('/selvedge/v1/info', settings.base).href
    const timeoutMs = limits.uplinkTimeoutMs.value
    const { headers } = settings
    const { answer, isBelieved } = await seeAbsent(
      () => peer.exchange({ method: 'GET', url, headers, timeoutMs }),
      (said) =>
        (!isTransient(said.status, [404, 405]) || (saysBarred(said) && kin?.is !== true)) && !isOfKin(said),
    )
    const isOurs = 'status' in answer && isOfKin(answer)
    if (!isOurs && !isBelieved) {
      const isUnreachable = 'failure' in answer
      silence = { isUnreachable, reason: isUnreachable ? answer.reason : `answered ${answer.status}` }
      // What it was it still is, as far as anybody knows.
      return kin?.is === true ? true : undefined
    }
    kin = { is: isOurs, seen: clock.monotonic() }
    return isOurs
  }

  const othersOf: OthersOf = async (there, steps, headers) => {
    const now = clock.now()
    const ahead = aheadBy(headers, now)
    const isOurs = await isSelvedge()
    if (isOurs === undefined && silence.isUnreachable) return unknown()
    if (isOurs === true) return askOthers([...there.keys()], settings.alias, seeOwn)
    // Times say it of who does not tell what it is, too: what is current waits for no proxy that lets only NGSI-LD through.
    return writtenSince(there, steps, { now, ahead })
  }

  const seeOwn = (path: string): Promise<Seen> =>
    seeAbsent(
      () => look(path),
      (said) => said.status >= 300 && (!isTransient(said.status, [404, 405, 501]) || saysBarred(said)),
    )

  const { remove, drop } = createRemoval({
    ...{ ask, settle, seeAbsent, othersOf, isSelvedge, now: clock.now },
  })

  function look(path: string): Promise<PeerAnswer> {
    const url = new URL(path, settings.base).href
    const headers: Record<string, string> = { accept: 'application/json', ...settings.headers }
    if (settings.tenant !== undefined) headers['ngsild-tenant'] = settings.tenant
    return peer.exchange({ method: 'GET', url, headers, timeoutMs: limits.uplinkTimeoutMs.value })
  }

  return Object.freeze({
    ask,
    look,
    see: (question) =>
      seeAbsent(question, ({ status }) => !isTransient(status, [404, 405, 501]) && status >= 300),
    seeOwn,
    isSelvedge,
    sentBytes: () => bytes,
    async pseudonym() {
      const { answer, isBelieved } = await seeAbsent(
        () => ask('GET', '/info/sourceIdentity'),
        (said) =>
          saysAbsent(said) || saysBarred(said) || (said.status < 300 && aliasIn(said.text) === undefined),
      )
      if ('failure' in answer) return { kind: 'later', reason: answer.reason, isUnreachable: true }
      const { status, text } = answer
      const isNone = status < 300 && aliasIn(text) === undefined && !isBelieved
      const isAbsent = isBelieved || saysNoTenant(answer)
      if (isNone || (isTransient(status) && !isAbsent)) return later(`who are you? It answered ${status}`)
      // Who does not say goes by its address, as the origin of what is copied from there does.
      return { name: (status === 200 ? aliasIn(text) : undefined) ?? new URL(settings.base).host }
    },
    async send({ kind, steps }, heldMs) {
      if (kind === 'put')
        return inTurn([...partsOf(steps).entries()], ([i, part]) => put(part, i === 0 ? heldMs : undefined))
      if (kind === 'remove')
        return inTurn(
          idParts(steps, ({ entity }) => entity.id),
          remove,
        )
      const most = limits.uplinkInstancesPerRequest.value
      // Parts of one thing go in their order, different things side by side.
      return atOnce(steps, (step) =>
        kind === 'past' ? inTurn(pastParts(step, most), past) : kind === 'erase' ? erase(step) : drop(step),
      )
    },
  } satisfies Centre)
}

/** Whether this is what a gateway like this one tells of itself. */
const isOfKin = ({ status, text }: { readonly status: number; readonly text: string }): boolean =>
  status === 200 && text.includes('selvedge') && isObject(parsedJson(text))

const attributesOf = (step: Step): Attributes =>
  step.kind === 'put' || step.kind === 'past' ? step.attributes : new Map()

/** What was not observed without the time of its writing, which an ordinary broker would take for an attribute or refuse. */
const withoutTimes = (attributes: Attributes): Attributes =>
  new Map([...attributes].map(([name, all]) => [name, all.map(withoutTime)]))

function observedOf(attributes: Attributes): Attributes {
  const observed = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of attributes) {
    const some = instances.filter(({ observedAt }) => observedAt !== undefined)
    if (some.length > 0) observed.set(name, some)
  }
  return observed
}

/** The name that a broker gives itself (GS CIM 009, 5.15). */
function aliasIn(text: string): string | undefined {
  const body = parsedJson(text)
  const alias = isObject(body) ? body['contextSourceAlias'] : undefined
  return typeof alias === 'string' ? alias : undefined
}

/** Steps in parts that make requests of bounded length. */
export function partsOf(steps: readonly Step[]): readonly (readonly Step[])[] {
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
function pastParts(step: Step, most: number): readonly Step[] {
  if (step.kind !== 'past') return [step]
  const parts: { attributes: Map<string, readonly AttributeInstance[]> }[] = []
  let room = 0
  for (const [name, instances] of step.attributes) {
    for (let from = 0; from < instances.length; ) {
      if (room <= 0) {
        parts.push({ attributes: new Map() })
        room = most
      }
      const some = instances.slice(from, from + room)
      parts.at(-1)!.attributes.set(name, some)
      from += some.length
      room -= some.length
    }
  }
  return parts.map((part) => ({ ...step, ...part }))
}
