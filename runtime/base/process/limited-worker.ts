/**
 * Starts worker threads with memory limits of their own. A flag of V8 for the size of the young generation
 * takes precedence over the limits of a thread. The flag is meant for the main thread, whose heap exists by
 * then.
 */
import { setFlagsFromString } from 'node:v8'
import { type ResourceLimits, Worker, type WorkerOptions } from 'node:worker_threads'

export interface LimitedWorkerOptions extends Omit<WorkerOptions, 'resourceLimits'> {
  readonly resourceLimits: ResourceLimits
}

export function startLimitedWorker(module: URL, options: LimitedWorkerOptions): Worker {
  setFlagsFromString('--max-semi-space-size=0')
  return new Worker(module, options)
}
