/**
 * The client of the central broker. It uses only the ordinary NGSI-LD operations (GS CIM 009, clause 6), so
 * any broker can be a centre. Each send ends in an outcome per step: accepted, refused with a reason, or
 * retry later. The client never throws for what the centre does.
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
  brokerProbePath,
  type Confirmation,
  createConfirmAbsent,
  isAbsent,
  isForbidden,
  isList,
  isNoTenant,
  isTooLarge,
} from '#uplink/connection/absence.ts'
import { withoutTime } from '#uplink/steps/change-steps.ts'
import { idParts } from '#uplink/steps/id-parts.ts'
import { type Attributes, bodyOf, instanceCount, type Layer, type Step } from '#uplink/steps/step-plan.ts'
import { historyQuery, withoutKnown } from './dedupe-history.ts'
import { clockLeadMs, foreignByTimes, requestForeign } from './foreign-attributes.ts'
import {
  createSettle,
  done,
  inOrder,
  isRead,
  isTransient,
  later,
  parallel,
  type SendOutcome,
} from './outcome.ts'
import { createRemoval, type ForeignOf, type SendOptions, type SendRequest } from './removal.ts'

export interface CentralBrokerSettings {
  /** Ends in /ngsi-ld/v1. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  readonly tenant?: string | undefined
  /** The name of this gateway in Via. */
  readonly alias: string
  /** Whether a past value may become current where it is newer, as selections by values require. */
  readonly pastMayBecomeCurrent?: boolean
}

const compress = promisify<string, ZlibOptions, Buffer>(gzip)

const headersFor = (
  { alias, tenant, headers }: CentralBrokerSettings,
  { via, states }: SendOptions,
): Readonly<Record<string, string>> => ({
  accept: 'application/json',
  Via: viaHeader(via, alias),
  ...headers,
  ...(tenant === undefined ? {} : { 'ngsild-tenant': tenant }),
  ...(states === undefined ? {} : { [statedHeader]: states.join() }),
})

export type CentralBroker = ReturnType<typeof createCentralBroker>

export function createCentralBroker(peer: Peer, settings: CentralBrokerSettings, clock: Clock) {
  /** Compresses one body at a time, so that the main thread of a small board keeps a core. */
  const turn = createSemaphore()
  let bytes = 0
  /** Whether bodies are sent with gzip; undefined until the centre has confirmed or refused it. */
  let sendsGzip: boolean | undefined
  /** When the centre last reported that it keeps no histories. */
  let noHistorySince = Number.NEGATIVE_INFINITY
  /** Whether the centre is a Selvedge, and when that was determined. */
  let selvedge: { readonly is: boolean; readonly at: number } | undefined
  /** Why the last attempt to determine it failed. */
  let lastFailure = { reason: '', isUnreachable: false }

  const request: SendRequest = async (method, path, options = {}) => {
    const { body, via, heldMs, states } = options
    const text = body === undefined ? undefined : JSON.stringify(body)
    const isGzip = sendsGzip !== false && text !== undefined && text.length > limits.uplinkGzipBytesMin.value
    // Until gzip support is confirmed, any error status may mean "cannot decompress".
    const isUnknown = sendsGzip === undefined
    const payload = isGzip ? await turn(() => compress(text, { level: 1 })) : text
    const headers: Record<string, string> = { ...headersFor(settings, options) }
    if (text !== undefined) headers['content-type'] = 'application/json'
    if (isGzip) headers['content-encoding'] = 'gzip'
    if (payload !== undefined) bytes += Buffer.byteLength(payload)
    const url = settings.base + path
    const timeoutMs = limits.uplinkTimeoutMs.value
    const answer = await peer.exchange({ method, url, headers, body: payload, timeoutMs, heldMs })
    if (!isGzip || 'failure' in answer) return answer
    if (isRead(answer)) sendsGzip = true
    if (answer.status !== 415 && (!isUnknown || sendsGzip === true || answer.status === 429)) return answer
    sendsGzip = false
    const plain = await request(method, path, { body, via, states })
    if (isUnknown && !('failure' in plain) && plain.status >= 300 && answer.status !== 415)
      sendsGzip = undefined
    return plain
  }

  const brokerResponds = async (): Promise<boolean> => isList(await request('GET', brokerProbePath))
  const settle = createSettle(clock, brokerResponds)
  const confirmAbsent = createConfirmAbsent(brokerResponds)
  const isOld = (at: number): boolean => clock.monotonic() - at >= limits.uplinkRecheckMs.value

  const undetermined = (): SendOutcome & { kind: 'later' } => ({
    kind: 'later',
    ...lastFailure,
    reason: `unknown kind of centre: ${lastFailure.reason}`,
  })

  async function put(steps: readonly Step[], heldMs?: number): Promise<SendOutcome> {
    // If unsure, assume a Selvedge: other brokers must ignore its additions (clause 4.8).
    const isOurs = (await isSelvedge()) !== false
    const { stating = [], others = [] } = Object.groupBy(steps, ({ entity }) =>
      isOurs && entity.statesTypes === true ? 'stating' : 'others',
    )
    if (stating.length > 0 && others.length > 0)
      return inOrder([others, stating], (some) => put(some, heldMs))
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
    const answer = await request('POST', path, { body: bodies, via: steps[0]?.via, heldMs, states })
    return settle(steps, answer, (some) => put(some))
  }

  async function sendPast(step: Step): Promise<SendOutcome> {
    const isOurs = await isSelvedge()
    if (isOurs === undefined) return undetermined()
    if (isOurs && attributesOf(step).size === 0) return done([], 1)
    const states = settings.pastMayBecomeCurrent === true ? undefined : (['past'] as const)
    if (isOurs)
      return settle([step], await createPast(step, '?options=sysAttrs', states), () => sendPast(step))
    if (!isOld(noHistorySince)) return done([], 1)
    // Other brokers cannot date an instance without observedAt.
    const attributes = observedOf(attributesOf(step))
    if (step.kind !== 'past' || attributes.size === 0) return done([], 1)
    return inOrder(pastParts({ ...step, attributes }, limits.uplinkInstancesPerQuery.value), sendPastOnce)
  }

  /** Sends only missing instances, because another broker stores a repeated one twice. */
  async function sendPastOnce(step: Step): Promise<SendOutcome> {
    const { id } = step.entity
    const { answer, isConfirmed } = await confirmAbsent(() =>
      request('GET', historyQuery(id, attributesOf(step))),
    )
    const count = instanceCount(step)
    if (isTooLarge(answer) && count > 1) return inOrder(pastParts(step, Math.ceil(count / 2)), sendPastOnce)
    if (isTooLarge(answer)) return done([{ step, reason: answer.reason }])
    if ('failure' in answer || (isTransient(answer.status) && !isConfirmed))
      return settle([step], answer, () => sendPast(step))
    const { status, text } = answer
    if (status < 300 && !isObject(parsedJson(text)))
      return later(`answered ${status} to a history query without a history`)
    const attributes = status === 200 ? withoutKnown(attributesOf(step), text) : attributesOf(step)
    if (attributes.size === 0) return done()
    return settlePast(step, attributes, async () => {
      const { id: _, type: __, scope: ___, ...fragment } = bodyOf(step.entity, attributes, 'temporal')
      const path = `/temporal/entities/${encodeURIComponent(id)}/attrs`
      const reply = await request('POST', path, { body: fragment, via: step.via })
      return 'status' in reply && isAbsent(reply) ? createPast({ ...step, attributes } as Step, '') : reply
    })
  }

  function createPast(step: Step, query: string, states?: readonly Stated[]): Promise<PeerAnswer> {
    const body = bodyOf(step.entity, attributesOf(step), 'temporal')
    return request('POST', `/temporal/entities${query}`, { body, via: step.via, states })
  }

  async function settlePast(
    step: Step,
    attributes: Attributes,
    post: () => Promise<PeerAnswer>,
  ): Promise<SendOutcome> {
    if (attributes.size === 0) return done([], 1)
    const { answer, isConfirmed } = await confirmAbsent(post)
    if (isConfirmed) {
      noHistorySince = clock.monotonic()
      return done([], 1)
    }
    return settle([step], answer, () => sendPast(step))
  }

  /** A centre without histories, or without this one, has nothing to erase. */
  async function erase(step: Step): Promise<SendOutcome> {
    if (step.kind !== 'erase') return done()
    const { entity, name, dataset } = step
    const which = dataset === '*' ? 'deleteAll=true' : `datasetId=${encodeURIComponent(dataset)}`
    const path = `/temporal/entities/${encodeURIComponent(entity.id)}/attrs/${encodeURIComponent(name)}`
    const { answer, isConfirmed } = await confirmAbsent(() =>
      request('DELETE', dataset === '' ? path : `${path}?${which}`, { via: step.via }),
    )
    return isConfirmed || isNoTenant(answer) ? done() : settle([step], answer, () => erase(step))
  }

  async function isSelvedge(): Promise<boolean | undefined> {
    if (selvedge !== undefined && !isOld(selvedge.at)) return selvedge.is
    const url = new URL('/selvedge/v1/info', settings.base).href
    const timeoutMs = limits.uplinkTimeoutMs.value
    const { headers } = settings
    const { answer, isConfirmed } = await confirmAbsent(
      () => peer.exchange({ method: 'GET', url, headers, timeoutMs }),
      (reply) =>
        (!isTransient(reply.status, [404, 405]) || (isForbidden(reply) && selvedge?.is !== true)) &&
        !isSelvedgeInfo(reply),
    )
    const isOurs = 'status' in answer && isSelvedgeInfo(answer)
    if (!isOurs && !isConfirmed) {
      const isUnreachable = 'failure' in answer
      lastFailure = { isUnreachable, reason: isUnreachable ? answer.reason : `answered ${answer.status}` }
      // A centre that was a Selvedge before still counts as one.
      return selvedge?.is === true ? true : undefined
    }
    selvedge = { is: isOurs, at: clock.monotonic() }
    return isOurs
  }

  const foreignOf: ForeignOf = async (there, steps, headers) => {
    const now = clock.now()
    const ahead = clockLeadMs(headers, now)
    const isOurs = await isSelvedge()
    if (isOurs === undefined && lastFailure.isUnreachable) return undetermined()
    if (isOurs === true) return requestForeign([...there.keys()], settings.alias, confirmAbsentSelvedge)
    // A proxy that passes only NGSI-LD must not hold up current values, so times decide here too.
    return foreignByTimes(there, steps, { now, ahead })
  }

  const confirmAbsentSelvedge = (path: string): Promise<Confirmation> =>
    confirmAbsent(
      () => getSelvedge(path),
      (reply) => reply.status >= 300 && (!isTransient(reply.status, [404, 405, 501]) || isForbidden(reply)),
    )

  const { remove, drop } = createRemoval({
    request,
    settle,
    confirmAbsent,
    foreignOf,
    isSelvedge,
    now: clock.now,
  })

  function getSelvedge(path: string): Promise<PeerAnswer> {
    const url = new URL(path, settings.base).href
    const headers: Record<string, string> = { accept: 'application/json', ...settings.headers }
    if (settings.tenant !== undefined) headers['ngsild-tenant'] = settings.tenant
    return peer.exchange({ method: 'GET', url, headers, timeoutMs: limits.uplinkTimeoutMs.value })
  }

  return Object.freeze({
    /** Sends one request of any kind, for link tests and reconciliation. */
    request,
    /** Sends a GET to an operation that only Selvedge has; `path` is relative to its root. */
    getSelvedge,
    /** Sends a query, and confirms a reply that reports the entity or operation as absent. */
    confirmAbsent: (request: () => Promise<PeerAnswer>): Promise<Confirmation> =>
      confirmAbsent(request, ({ status }) => !isTransient(status, [404, 405, 501]) && status >= 300),
    /** Same for an operation that only Selvedge has. A confirmed 401 or 403 counts as absent. */
    confirmAbsentSelvedge,
    /** Whether the centre is a Selvedge; undefined while this cannot be determined. */
    isSelvedge,
    /** Bytes handed to the connection so far. */
    sentBytes: () => bytes,
    /** The centre's name in Via, requested at each call; falls back to its host name. */
    async pseudonym(): Promise<{ readonly name: string | undefined } | (SendOutcome & { kind: 'later' })> {
      const { answer, isConfirmed } = await confirmAbsent(
        () => request('GET', '/info/sourceIdentity'),
        (reply) =>
          isAbsent(reply) || isForbidden(reply) || (reply.status < 300 && aliasIn(reply.text) === undefined),
      )
      if ('failure' in answer) return { kind: 'later', reason: answer.reason, isUnreachable: true }
      const { status, text } = answer
      const isNone = status < 300 && aliasIn(text) === undefined && !isConfirmed
      const isMissing = isConfirmed || isNoTenant(answer)
      if (isNone || (isTransient(status) && !isMissing))
        return later(`answered ${status} when asked for its identity`)
      // Copies of a centre without a name use its host as their origin, so the uplink does too.
      return { name: (status === 200 ? aliasIn(text) : undefined) ?? new URL(settings.base).host }
    },
    /**
     * Sends one layer, split into several requests where needed. `heldMs` bounds how long a put may wait for
     * the rate limit before its first request; beyond that, nothing is sent.
     */
    async send({ kind, steps }: Layer, heldMs?: number): Promise<SendOutcome> {
      if (kind === 'put')
        return inOrder([...partsOf(steps).entries()], ([i, part]) => put(part, i === 0 ? heldMs : undefined))
      if (kind === 'remove')
        return inOrder(
          idParts(steps, ({ entity }) => entity.id),
          remove,
        )
      const most = limits.uplinkInstancesPerRequest.value
      // Parts of one step are sent in order; different steps are sent in parallel.
      return parallel(steps, (step) =>
        kind === 'past'
          ? inOrder(pastParts(step, most), sendPast)
          : kind === 'erase'
            ? erase(step)
            : drop(step),
      )
    },
  })
}

/** Whether a reply is the info document of a Selvedge. */
const isSelvedgeInfo = ({ status, text }: { readonly status: number; readonly text: string }): boolean =>
  status === 200 && text.includes('selvedge') && isObject(parsedJson(text))

const attributesOf = (step: Step): Attributes =>
  step.kind === 'put' || step.kind === 'past' ? step.attributes : new Map()

/** Removes modification times, which an ordinary broker would store as an attribute or refuse. */
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

/** The alias a broker reports for itself (GS CIM 009, 5.15). */
function aliasIn(text: string): string | undefined {
  const body = parsedJson(text)
  const alias = isObject(body) ? body['contextSourceAlias'] : undefined
  return typeof alias === 'string' ? alias : undefined
}

/** Splits steps into parts whose requests have a bounded length. */
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

/** The approximate number of bytes of a step in a request. */
function sizeOf(step: Step): number {
  let size = step.entity.id.length + 64
  for (const [name, instances] of attributesOf(step))
    size += name.length + instances.reduce((sum, one) => sum + roughly(one), 0)
  return size
}

/** Long values are measured, numbers are estimated. */
const roughly = (instance: { readonly value?: unknown }): number =>
  typeof instance.value === 'number' ? 120 : JSON.stringify(instance).length

/** Splits a long history of one entity into several requests. */
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
