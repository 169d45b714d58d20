/** Trains in a thread of its own, within a time limit. One training runs at a time; others wait. */
import { limits } from '#base/limits/limits.ts'
import { runInThread, type ThreadWatch } from '#base/process/thread.ts'
import { GatewayError } from '#base/register/errors.ts'
import type {
  TrainingInput,
  TrainingOutcome,
} from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'

/** Memory of the thread, MB: histories and their table within the ceilings take about 50. */
const resourceLimits = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 192 }

/**
 * @throws virtual-sensors.failed after `limits.virtualTrainingMs`; the reason of `signal` if it is aborted
 */
export function trainInThread(input: TrainingInput, watch: ThreadWatch): Promise<TrainingOutcome> {
  const file = import.meta.url.endsWith('.ts') ? './virtual-sensor-thread.ts' : './virtual-sensor-thread.js'
  const ms = limits.virtualTrainingMs.value
  const error = new GatewayError('virtual-sensors.failed', `the training took longer than ${ms / 1000} s`)
  return runInThread(
    { module: new URL(file, import.meta.url), data: input, resourceLimits, timeLimit: { ms, error } },
    watch,
  )
}

/** Runs jobs one after the other. */
export function createTurns(): <T>(job: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (job) => {
    const next = last.then(job, job)
    last = next.catch(() => undefined)
    return next
  }
}
