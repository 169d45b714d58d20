/**
 * Sends a refused change again when an operator requests it. It takes a turn of the live lane and first sends
 * the entity's unsent changes. So neither overtakes the other, and no older value replaces a newer one. While
 * the centre is unavailable, the request fails at once.
 */
import { limits } from '#base/limits/limits.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { CentralBroker } from '#uplink/centre/central-broker.ts'
import type { Connectivity } from '#uplink/centre/connectivity.ts'
import { done, inOrder, later, type SendOutcome } from '#uplink/centre/outcome.ts'
import type { CurrentSteps } from '#uplink/progress/current-steps.ts'
import { retrySteps } from '#uplink/steps/retry-plan.ts'
import { layersOf, type Step } from '#uplink/steps/step-plan.ts'
import type { Gate } from './gate.ts'

export interface RetryRefusedPorts {
  readonly following: Pick<ChangeFeed, 'entity'>
  readonly current: Pick<CurrentSteps, 'turn' | 'unsentSteps'>
  /** The client of the centre on the live lane. */
  readonly live: Pick<CentralBroker, 'send'>
  readonly gate: Pick<Gate, 'closedBy'>
  readonly connectivity: Pick<Connectivity, 'trouble' | 'sleep' | 'isClosed'>
  /** Sends until accepted; false when the uplink was closed. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
}

/** Retries a refused step, as far as it still applies. */
export function createRefusedRetry(ports: RetryRefusedPorts): (step: Step) => Promise<SendOutcome> {
  const { following, current, live, gate, connectivity, deliverNow } = ports
  const unavailable = (): string | undefined =>
    connectivity.isClosed()
      ? 'the uplink is closed'
      : (gate.closedBy('live') ?? connectivity.trouble('live')?.reason)

  async function now(step: Step, isOver: () => boolean): Promise<SendOutcome> {
    const reason = unavailable()
    if (reason !== undefined) return later(reason)
    // Both are read at the same log position.
    const unsent = current.unsentSteps(step.entity.id)
    const steps = retrySteps(step, following.entity(step.entity.id)?.entity())
    if (!(await deliverNow(unsent.steps))) return later('the uplink is closed')
    // The steps were read at the start and may be outdated by now.
    if (isOver()) return later('the request was abandoned')
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
    const abandoned = async (): Promise<SendOutcome> => {
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
