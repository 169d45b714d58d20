/**
 * Starts the training thread, reports its progress, and ends it after a time limit or when the training is
 * cancelled.
 */
import { Worker } from 'node:worker_threads'
import { limits } from '#base/limits/limits.ts'
import { type ErrorCode, GatewayError, toGatewayError } from '#base/register/errors.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { TrainedModel, TrainingJob } from './training-job.ts'

export type FromTraining =
  | { readonly kind: 'progress'; readonly share: number }
  | { readonly kind: 'trained'; readonly trained: TrainedModel }
  | {
      readonly kind: 'failed'
      readonly code: ErrorCode
      readonly message: string
      readonly details: Readonly<Record<string, unknown>>
    }

/** Memory of the thread, MB: values, windows and features within their ceilings take about 60. */
const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 128 }

/**
 * Trains in a thread of its own.
 * @throws what the training threw; ngsi-ld.too-complex after `limits.patternTrainingMs`; the reason of
 * `signal` if it is aborted
 */
export async function trainInThread(
  job: TrainingJob,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (share: number) => void },
): Promise<TrainedModel> {
  signal.throwIfAborted()
  const file = import.meta.url.endsWith('.ts') ? './training-thread.ts' : './training-thread.js'
  const worker = new Worker(new URL(file, import.meta.url), { workerData: job, resourceLimits })
  const { promise, resolve, reject } = Promise.withResolvers<TrainedModel>()
  worker.on('message', (message: FromTraining) => {
    if (message.kind === 'progress') onProgress(message.share)
    else if (message.kind === 'trained') resolve(message.trained)
    else reject(new GatewayError(message.code, message.message, message.details))
  })
  worker.on('error', (error: unknown) => reject(toGatewayError(error)))
  worker.on('exit', () => reject(new GatewayError('gateway.internal', 'the training thread ended early')))
  const cancel = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', cancel, { once: true })
  const seconds = limits.patternTrainingMs.value / 1000
  const tooLong = tooComplex(`the training took longer than ${seconds} s`)
  const timer = setTimeout(() => reject(tooLong), limits.patternTrainingMs.value).unref()
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', cancel)
    await worker.terminate()
  }
}
