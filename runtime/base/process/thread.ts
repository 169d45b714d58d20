/**
 * Runs one piece of work in a thread of its own, with limits on time and memory, while the main thread serves
 * requests. The thread reports progress, and finally the result or the error.
 */
import { parentPort, type ResourceLimits, workerData } from 'node:worker_threads'
import {
  assert,
  type ErrorCode,
  GatewayError,
  isGatewayError,
  toGatewayError,
} from '#base/register/errors.ts'
import { startLimitedWorker } from './limited-worker.ts'

type FromThread =
  | { readonly kind: 'progress'; readonly share: number }
  | { readonly kind: 'done'; readonly result: unknown }
  | {
      readonly kind: 'failed'
      readonly code: ErrorCode
      readonly message: string
      readonly details: Readonly<Record<string, unknown>>
    }

export interface ThreadWork {
  /** The module of the thread, which calls `answerInThread`. */
  readonly module: URL
  /** Copied to the thread. */
  readonly data: unknown
  readonly resourceLimits: ResourceLimits
  /** Beyond it the thread is ended, with this error. */
  readonly timeLimit: { readonly ms: number; readonly error: GatewayError }
}

export interface ThreadWatch {
  readonly signal: AbortSignal
  /** Share of the work that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
}

/** @throws what the work threw; the error of the time limit; the reason of `signal` if it is aborted */
export async function runInThread<Result>(
  { module, data, resourceLimits, timeLimit }: ThreadWork,
  { signal, onProgress }: ThreadWatch,
): Promise<Result> {
  signal.throwIfAborted()
  const worker = startLimitedWorker(module, { workerData: data, resourceLimits })
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  worker.on('message', (message: FromThread) => {
    if (message.kind === 'progress') onProgress(message.share)
    else if (message.kind === 'done') resolve(message.result as Result)
    else reject(new GatewayError(message.code, message.message, message.details))
  })
  worker.on('error', (error: unknown) => reject(toGatewayError(error)))
  worker.on('exit', () => reject(new GatewayError('gateway.internal', 'the thread ended early')))
  const cancel = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', cancel, { once: true })
  const timer = setTimeout(() => reject(timeLimit.error), timeLimit.ms).unref()
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', cancel)
    await worker.terminate()
  }
}

/** To be called by the module of a thread: does the work on the data that the thread was given. */
export function answerInThread<Data, Result>(
  work: (data: Data, onProgress: (share: number) => void) => Result,
): void {
  assert(parentPort !== null, 'this module runs in a worker thread')
  const port = parentPort
  const post = (message: FromThread): void => port.postMessage(message)
  try {
    const result = work(workerData as Data, (share) => post({ kind: 'progress', share }))
    post({ kind: 'done', result })
  } catch (error) {
    const { code, message, details } = isGatewayError(error) ? error : toGatewayError(error)
    post({ kind: 'failed', code, message, details })
  }
}
