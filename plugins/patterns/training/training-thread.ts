/**
 * The worker thread of one training: it computes windows and fits the model, which may take minutes, while
 * the main thread serves requests. It reports progress, and finally the model or the error.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { assert, isGatewayError, toGatewayError } from '#base/register/errors.ts'
import type { FromTraining } from './trainer.ts'
import { runTraining, type TrainingJob } from './training-job.ts'

assert(parentPort !== null, 'models are trained by a worker thread')
const port = parentPort
const post = (message: FromTraining): void => port.postMessage(message)

try {
  const trained = runTraining(workerData as TrainingJob, (done, total) => {
    post({ kind: 'progress', share: done / total })
  })
  post({ kind: 'trained', trained })
} catch (error) {
  const { code, message, details } = isGatewayError(error) ? error : toGatewayError(error)
  post({ kind: 'failed', code, message, details })
}
