/**
 * What became of what was sent: taken, refused with a reason, or not now. Only answers that name what is wrong refuse
 * something; where time or a change over there may heal it, it is to be sent again.
 */
import { limits } from '#base/limits.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import type { Step } from './plan.ts'

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

/** Client errors that time or a change over there heals. */
const healing = new Set([401, 403, 404, 405, 408, 410, 425, 429])
const loopDetected = 508
/** Whether a status says only that it is not now; `telling` are those that do say something here. */
export const isTransient = (status: number, telling: readonly number[] = []): boolean =>
  (status >= 500 || status < 200 || healing.has(status)) && !telling.includes(status)

export const done = (refused: readonly Refusal[] = [], skipped = 0): Outcome => ({
  kind: 'done',
  refused,
  skipped,
})

/** One after the other, until one is not taken now. */
export async function inTurn<T>(all: readonly T[], send: (one: T) => Promise<Outcome>): Promise<Outcome> {
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

/** A few at a time, until one is not taken now. */
export async function atOnce(
  steps: readonly Step[],
  send: (step: Step) => Promise<Outcome>,
): Promise<Outcome> {
  const waiting = [...steps]
  const lane = async (): Promise<Outcome> => {
    const refused: Refusal[] = []
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
  return inTurn(await Promise.all(Array.from({ length: count }, lane)), (outcome) => Promise.resolve(outcome))
}

/**
 * What an answer says of each of the steps that were sent together. Where all are refused together nobody knows which is at
 * fault, so each half is sent anew.
 */
export async function settle(
  steps: readonly Step[],
  answer: PeerAnswer,
  again: (steps: readonly Step[]) => Promise<Outcome>,
): Promise<Outcome> {
  if ('failure' in answer) return { kind: 'later', reason: answer.reason, isUnreachable: true }
  const { status, text } = answer
  if (status === 207) return settleEach(steps, text)
  if (status >= 200 && status < 300) return done()
  // It went through there before.
  if (status === loopDetected) return done([], steps.length)
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
  const heals = errors.find(
    ({ error }) =>
      isTransient(error?.status ?? 400) && error?.status !== 404 && error?.status !== loopDetected,
  )
  if (heals !== undefined)
    return { kind: 'later', reason: `${heals.entityId}: ${reasonOf(heals.error)}`, isUnreachable: false }
  return done(
    steps
      .filter(({ entity }) => failed.has(entity.id) && failed.get(entity.id)?.status !== loopDetected)
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
