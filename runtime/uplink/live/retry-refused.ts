/**
 * What was refused before, sent again when somebody asks for it. It takes a turn of the live lane, and first tells what the
 * entity became that this lane has not told yet: so neither overtakes the other, and no older value comes over a newer one. Who
 * asks does not wait while nothing gets through.
 */
import { limits } from '#base/limits/limits.ts'
import type { Following } from '#broker/changes/change-feed.ts'
import type { Centre } from '#uplink/centre/central-broker.ts'
import type { Connectivity } from '#uplink/centre/connectivity.ts'
import { done, inOrder, later, type Outcome } from '#uplink/centre/outcome.ts'
import type { CurrentSteps } from '#uplink/progress/current-steps.ts'
import { retrySteps } from '#uplink/steps/retry-plan.ts'
import { layersOf, type Step } from '#uplink/steps/step-plan.ts'
import type { Gate } from './gate.ts'

export interface RetryingPorts {
  readonly following: Pick<Following, 'entity'>
  readonly current: Pick<CurrentSteps, 'turn' | 'unsentSteps'>
  /** The other broker, by the way of the live lane. */
  readonly live: Pick<Centre, 'send'>
  readonly gate: Pick<Gate, 'closedBy'>
  readonly connectivity: Pick<Connectivity, 'trouble' | 'sleep' | 'isClosed'>
  /** Sends until it was taken; false when the uplink was closed meanwhile. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
}

/** Sends a step that was refused before, as far as it is still to be done. */
export function createRetrying(ports: RetryingPorts): (step: Step) => Promise<Outcome> {
  const { following, current, live, gate, connectivity, deliverNow } = ports
  const unavailable = (): string | undefined =>
    connectivity.isClosed() ? 'it is closed' : (gate.closedBy('live') ?? connectivity.trouble('live')?.reason)

  async function now(step: Step, isOver: () => boolean): Promise<Outcome> {
    const reason = unavailable()
    if (reason !== undefined) return later(reason)
    // Both are read at one place of the log.
    const unsent = current.unsentSteps(step.entity.id)
    const steps = retrySteps(step, following.entity(step.entity.id)?.entity())
    if (!(await deliverNow(unsent.steps))) return later('it is closed')
    // What it tells was read when it began, and may have gone since.
    if (isOver()) return later('it was given up')
    const outcome = await inOrder(layersOf(steps), live.send)
    return outcome.kind === 'done' ? done(outcome.refused) : outcome
  }

  return async (step) => {
    const reason = unavailable()
    if (reason !== undefined) return later(reason)
    let isOver = false
    const sent = current
      .turn(() => (isOver ? Promise.resolve(later('')) : now(step, () => isOver)))
      .finally(() => (isOver = true))
    const abandoned = async (): Promise<Outcome> => {
      for (; !isOver; await connectivity.sleep(limits.uplinkPollMs.value)) {
        const since = unavailable()
        if (since === undefined) continue
        isOver = true
        return later(since)
      }
      return sent
    }
    return Promise.race([sent, abandoned()])
  }
}
