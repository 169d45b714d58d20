/**
 * A thread that does one task after another, while the main thread serves requests. It starts with the first
 * task, and ends when there has been none for a while, so that it costs nothing at rest.
 */
import { parentPort, type ResourceLimits, type Worker } from 'node:worker_threads'
import { assert, GatewayError, toGatewayError } from '#base/register/errors.ts'
import { startLimitedWorker } from './limited-worker.ts'

export interface WorkingThreadSettings {
  /** The module of the thread, which calls `workInThread`. */
  readonly module: URL
  readonly resourceLimits: ResourceLimits
  /** Longest time of a task, with the start of the thread. Beyond it: the thread is ended. */
  readonly taskMs: number
  /** Time without a task after which the thread ends. */
  readonly idleMs: number
}

export interface WorkingThread<Task, Result> {
  /**
   * Does a task after those that were given before; the caller bounds their number.
   * @param task is called when the thread is free for it.
   * @throws what the work threw; store.closed
   */
  run(task: () => Task): Promise<Result>
  close(): Promise<void>
}

type FromThread = { readonly result: unknown } | { readonly message: string }

interface Waiting<Task, Result> extends PromiseWithResolvers<Result> {
  readonly task: () => Task
}

export function createWorkingThread<Task, Result>(
  settings: WorkingThreadSettings,
): WorkingThread<Task, Result> {
  const queue: Waiting<Task, Result>[] = []
  let current: Waiting<Task, Result> | undefined
  let worker: Worker | undefined
  let timer: NodeJS.Timeout | undefined
  let ending: Promise<unknown> = Promise.resolve()
  let isClosed = false

  function end(): void {
    clearTimeout(timer)
    if (worker === undefined) return
    const ended = worker
    worker = undefined
    ended.removeAllListeners()
    // A thread that is being ended may still report an error.
    ended.on('error', () => undefined)
    ending = ended.terminate()
  }

  function fail(error: unknown): void {
    const failed = current
    current = undefined
    end()
    failed?.reject(toGatewayError(error))
    next()
  }

  function started(): Worker {
    const begun = startLimitedWorker(settings.module, { resourceLimits: settings.resourceLimits })
    begun.unref()
    begun.on('error', fail)
    begun.on('exit', () => fail(new GatewayError('gateway.internal', 'the thread ended early')))
    begun.on('message', (message: FromThread) => {
      const done = current
      current = undefined
      clearTimeout(timer)
      if ('result' in message) done?.resolve(message.result as Result)
      else done?.reject(new GatewayError('gateway.internal', message.message))
      next()
    })
    return begun
  }

  function next(): void {
    if (current !== undefined || isClosed) return
    current = queue.shift()
    if (current === undefined) {
      if (worker !== undefined) timer = setTimeout(end, settings.idleMs).unref()
      return
    }
    clearTimeout(timer)
    const { taskMs } = settings
    timer = setTimeout(() => {
      fail(new GatewayError('gateway.internal', `the task of a thread took longer than ${taskMs / 1000} s`))
    }, taskMs).unref()
    try {
      worker ??= started()
      worker.postMessage(current.task())
    } catch (error) {
      fail(error)
    }
  }

  return Object.freeze({
    run(task) {
      if (isClosed) return Promise.reject(new GatewayError('store.closed', 'the thread is closed'))
      const waiting = { ...Promise.withResolvers<Result>(), task }
      queue.push(waiting)
      next()
      return waiting.promise
    },
    async close() {
      isClosed = true
      const left = [...(current === undefined ? [] : [current]), ...queue.splice(0)]
      current = undefined
      end()
      for (const { reject } of left) reject(new GatewayError('store.closed', 'the thread is closed'))
      await ending
    },
  } satisfies WorkingThread<Task, Result>)
}

/** To be called by the module of a thread: does each task that the thread is given. */
export function workInThread<Task, Result>(work: (task: Task) => Result): void {
  assert(parentPort !== null, 'this module runs in a worker thread')
  const port = parentPort
  const answer = (task: Task): FromThread => {
    try {
      return { result: work(task) }
    } catch (error) {
      return { message: toGatewayError(error).message }
    }
  }
  port.on('message', (task: Task) => port.postMessage(answer(task)))
}
