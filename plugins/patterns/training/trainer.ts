/** Trains in a thread of its own, within a time limit. */
import { limits } from '#base/limits/limits.ts'
import { runInThread, type ThreadWatch } from '#base/process/thread.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { TrainedModel, TrainingJob } from './training-job.ts'

/** Memory of the thread, MB: values, windows and features within their ceilings take about 60. */
const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 }

/**
 * @throws what the training threw; ngsi-ld.too-complex after `limits.patternTrainingMs`; the reason of
 * `signal` if it is aborted
 */
export function trainInThread(job: TrainingJob, watch: ThreadWatch): Promise<TrainedModel> {
  const file = import.meta.url.endsWith('.ts') ? './training-thread.ts' : './training-thread.js'
  const ms = limits.patternTrainingMs.value
  const error = tooComplex(`the training took longer than ${ms / 1000} s`)
  return runInThread(
    { module: new URL(file, import.meta.url), data: job, resourceLimits, timeLimit: { ms, error } },
    watch,
  )
}
