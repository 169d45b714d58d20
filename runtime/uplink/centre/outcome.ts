/**
 * Outcomes of sent steps: accepted, refused with a reason, or retry later. Only responses that name an error
 * refuse a step; if time or a change at the centre may resolve the error, the step is sent again.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { retryAfterMs } from '#delivery/backoff.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { problemTextIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { problemOf } from '#uplink/connection/absence.ts'
import { createSetbacks } from '#uplink/connection/setbacks.ts'
import type { Step } from '#uplink/steps/step-plan.ts'

/** A step that the centre refuses as it is. */
export interface StepRefusal {
  readonly step: Step
  readonly reason: string
  /** Whether the subject does not exist at the centre. */
  readonly isAbsent?: true
}

export type SendOutcome =
  | { readonly kind: 'done'; readonly refused: readonly StepRefusal[]; readonly skipped: number }
  /** Retry later: the centre is unreachable, or asks to wait. */
  | {
      readonly kind: 'later'
      readonly reason: string
      readonly isUnreachable: boolean
      readonly retryAfterMs?: number | undefined
      /** Not sent, because it waited too long for the rate limit. */
      readonly isHeldUp?: boolean | undefined
    }

/** Client errors that time or a change at the centre may resolve. */
const transientStatuses = new Set([401, 402, 403, 404, 405, 407, 408, 410, 425, 429])
/** If other items of a batch succeeded, these refuse the single item. */
const rejectingStatuses = new Set([401, 403, 405, 410])
const loopDetected = 508
/** Whether a status means only "retry later"; `meaningful` lists exceptions. */
export const isTransient = (status: number, meaningful: readonly number[] = []): boolean =>
  (status >= 500 || status < 200 || (status >= 300 && status < 400) || transientStatuses.has(status)) &&
  !meaningful.includes(status)

/** Retry later, although there was a response. */
export const later = (reason: string, pauseMs?: number): SendOutcome & { kind: 'later' } => ({
  kind: 'later',
  reason,
  isUnreachable: false,
  retryAfterMs: pauseMs,
})

export const done = (refused: readonly StepRefusal[] = [], skipped = 0): SendOutcome => ({
  kind: 'done',
  refused,
  skipped,
})

/** Sends in order until one must be retried later. */
export async function inOrder<T>(
  all: readonly T[],
  send: (one: T) => Promise<SendOutcome>,
): Promise<SendOutcome> {
  const refused: StepRefusal[] = []
  let skipped = 0
  for (const one of all) {
    const outcome = await send(one)
    if (outcome.kind === 'later') return outcome
    refused.push(...outcome.refused)
    skipped += outcome.skipped
  }
  return done(refused, skipped)
}

/** Sends a few at a time until one must be retried later. */
export async function parallel(
  steps: readonly Step[],
  send: (step: Step) => Promise<SendOutcome>,
): Promise<SendOutcome> {
  const waiting = [...steps]
  const lane = async (): Promise<SendOutcome> => {
    const refused: StepRefusal[] = []
    let skipped = 0
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
      const outcome = await send(step)
      if (outcome.kind === 'later') {
        waiting.length = 0
        return outcome
      }
      refused.push(...outcome.refused)
      skipped += outcome.skipped
    }
    return done(refused, skipped)
  }
  const count = Math.min(steps.length, limits.uplinkRequestsInFlight.value)
  return inOrder(await Promise.all(Array.from({ length: count }, lane)), (outcome) =>
    Promise.resolve(outcome),
  )
}

type Response = Extract<PeerAnswer, { status: number }>
type Resend = (steps: readonly Step[]) => Promise<SendOutcome>

/** Derives the outcome of each step from a response; `again` resends some of them. */
export type Settle = (steps: readonly Step[], answer: PeerAnswer, again: Resend) => Promise<SendOutcome>

/**
 * Derives outcomes. Only responses in the form of a broker count as accepted or refused; a web page from an
 * intermediary leads to a retry. An ambiguous response counts if it is repeated after a broker responded. If
 * a batch is refused as a whole, each half is resent to find the step at fault.
 */
export function createSettle(clock: Clock, brokerResponds: () => Promise<boolean>): Settle {
  const setbacks = createSetbacks(clock.monotonic)
  /** Steps being resent to confirm an ambiguous response. */
  const confirming = new Set<string>()

  /** The outcome of an ambiguous response, once it was repeated. */
  async function confirmed({ steps, status, again, outcome }: Ambiguous): Promise<SendOutcome> {
    // Resent steps may be grouped differently, so the key consists of their subjects.
    const key = steps.map(({ kind, entity }) => `${kind} ${entity.id}`).join()
    if (confirming.has(key)) return outcome
    if (!(await brokerResponds())) return later(`answered ${status} and is no broker now`)
    confirming.add(key)
    try {
      return await again(steps)
    } finally {
      confirming.delete(key)
    }
  }

  async function settle(steps: readonly Step[], answer: PeerAnswer, again: Resend): Promise<SendOutcome> {
    if ('failure' in answer) {
      const { reason, isHeldUp } = answer
      return { kind: 'later', reason, isUnreachable: true, isHeldUp }
    }
    const { status, text } = answer
    if (status === 207 || (status === 200 && isResult(parsedJson(text))))
      return settleEach(steps, text, again)
    if (isAcceptance(steps, answer)) return accepted(steps)
    if (status === 200 && text.trim() === '')
      return confirmed({ steps, status, again, outcome: accepted(steps) })
    // The change already passed through the centre.
    if (status === loopDetected) return done([], steps.length)
    const description = `answered ${status} ${problemTextIn(text)}`
    if (status < 300 || isTransient(status))
      return later(description, retryAfterMs(answer.headers['retry-after'], clock.now()))
    if (steps.length > 1) return inOrder(halvesOf(steps), again)
    const refused = done([{ step: steps[0]!, reason: `${status} ${problemTextIn(text)}` }])
    return problemOf(answer) === '' ? confirmed({ steps, status, again, outcome: refused }) : refused
  }

  function accepted(steps: readonly Step[]): SendOutcome {
    for (const { entity } of steps) setbacks.accepted(entity.id)
    return done()
  }

  /** The outcome per item (GS CIM 009, 5.2.16). Items named neither as succeeded nor as failed are resent. */
  async function settleEach(steps: readonly Step[], text: string, again: Resend): Promise<SendOutcome> {
    const result = batchResult(steps, text)
    if (result === undefined) return later('answered 207 without a body that can be read')
    const { succeeded, failed } = result
    const hasSuccess = steps.some(({ entity }) => succeeded.has(entity.id))
    const refused: StepRefusal[] = []
    const open: Step[] = []
    let skipped = 0
    let transientReason: string | undefined
    for (const step of steps) {
      const { id } = step.entity
      const error = failed.get(id)
      const isAlone = steps.length === 1
      if (succeeded.has(id)) setbacks.accepted(id)
      else if (error === undefined && !isAlone) open.push(step)
      else if (error !== undefined && statusOf(error) === loopDetected) skipped++
      else if (isRefused(id, error, hasSuccess)) refused.push(refusalOf(step, error))
      else transientReason ??= `${id}: ${reasonOf(error)}`
    }
    if (transientReason !== undefined) return later(transientReason)
    const rest = await inOrder(partsToResend(open, steps.length), again)
    if (rest.kind === 'later') return rest
    return done([...refused, ...rest.refused], skipped + rest.skipped)
  }

  /** Whether an item is refused; without an error, a response to this single item did not name it. */
  function isRefused(id: string, error: ItemError | undefined, isAmongTaken: boolean): boolean {
    const status = error === undefined ? 503 : statusOf(error)
    if (status === 404 || !isTransient(status)) return true
    if (isAmongTaken && rejectingStatuses.has(status)) return true
    const patience = isAmongTaken ? limits.uplinkSetbackMs : limits.uplinkSetbackAloneMs
    return setbacks.isExhausted(id, patience.value)
  }

  return settle
}

/** Without progress, halves, so that resending ends. */
function partsToResend(open: readonly Step[], sentCount: number): readonly (readonly Step[])[] {
  if (open.length === 0) return []
  return open.length < sentCount ? [open] : halvesOf(open)
}

/** Halves of a list that is too large for one request. */
export const halvesOf = <T>(all: readonly T[]): readonly (readonly T[])[] => {
  const half = Math.ceil(all.length / 2)
  return [all.slice(0, half), all.slice(half)]
}

/** An ambiguous response, and its outcome if it is repeated. */
interface Ambiguous {
  readonly steps: readonly Step[]
  readonly status: number
  readonly again: Resend
  readonly outcome: SendOutcome
}

/** Some brokers send the outcome per item with 200, as the first version of NGSI-LD did. */
const isResult = (body: unknown): boolean =>
  isObject(body) && [body['success'], body['errors']].some((list) => Array.isArray(list))

/** Whether a response lists only ids that were sent, as some brokers list created entities. */
function isListOf(steps: readonly Step[], text: string): boolean {
  const body = parsedJson(text)
  return Array.isArray(body) && body.every((id) => steps.some(({ entity }) => entity.id === id))
}

/** Whether a response accepts everything that was sent. */
const isAcceptance = (steps: readonly Step[], { status, text }: Response): boolean =>
  status === 201 || status === 204 || (status === 200 && isListOf(steps, text))

/** Whether a response shows, in a form only brokers use, that the request body was read. */
export function isRead({ status, text }: Response): boolean {
  const body = status === 200 ? parsedJson(text) : undefined
  return [201, 204, 207].includes(status) || Array.isArray(body) || isResult(body)
}

interface ItemError {
  readonly type?: string
  readonly status?: number | string
  readonly title?: string
  readonly detail?: unknown
}

interface BatchResult {
  /** Ids that succeeded. */
  readonly succeeded: ReadonlySet<string>
  readonly failed: ReadonlyMap<string, ItemError>
}

function batchResult(steps: readonly Step[], text: string): BatchResult | undefined {
  const body = parsedJson(text)
  if (!isObject(body)) return undefined
  const { success = [], errors = [] } = body as unknown as {
    success?: readonly string[]
    errors?: readonly BatchError[]
  }
  if (!Array.isArray(success) || !Array.isArray(errors)) return undefined
  const sent = new Set(steps.map(({ entity }) => entity.id))
  const failed = new Map<string, ItemError>()
  for (const { entityId, error = {} } of (errors as readonly unknown[]).map(
    (one) => (isObject(one) ? one : {}) as BatchError,
  )) {
    const id = entityId ?? (sent.size === 1 ? [...sent][0] : undefined)
    // Errors without a known id are ignored; the items they may mean are resent.
    if (id === undefined || !sent.has(id)) continue
    // A transient error takes precedence.
    if (!failed.has(id) || isTransient(statusOf(error))) failed.set(id, error)
  }
  const succeeded = new Set((success as readonly string[]).filter((id) => !failed.has(id)))
  return { succeeded, failed }
}

interface BatchError {
  readonly entityId?: string
  readonly error?: ItemError
}

/** A broker may omit the status; then the error type decides. */
function statusOf({ status, type = '' }: ItemError): number {
  if (status !== undefined) return Number(status) || 503
  if (/(?:ResourceNotFound|NonexistentTenant)$/.test(type)) return 404
  return /(?:InternalError|LdContextNotAvailable)$/.test(type) ? 503 : 400
}

const refusalOf = (step: Step, error: ItemError | undefined): StepRefusal => ({
  step,
  reason: reasonOf(error),
  ...(error !== undefined && statusOf(error) === 404 ? { isAbsent: true } : {}),
})

const reasonOf = (error: ItemError | undefined): string =>
  error === undefined
    ? 'answered 207 without naming it'
    : [error.status, error.title ?? error.type, error.detail]
        .filter((part) => part !== undefined)
        .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
        .join(' ')
