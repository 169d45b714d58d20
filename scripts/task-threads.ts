/**
 * Runs the tasks of an evaluation in worker threads and reports the progress with the expected time on
 * standard error, so that standard output has the table alone.
 */
import { parentPort, Worker, workerData } from 'node:worker_threads'

export interface TaskThreads<Task, Result> {
  /** The results in the order of the tasks. */
  run(tasks: readonly Task[]): Promise<Result[]>
  close(): Promise<void>
}

export interface TaskThreadsOptions<Task> {
  /** The name of the evaluation, for the progress. */
  readonly name: string
  /** The module of the threads, which calls `answerTasks`. */
  readonly module: URL
  /** Copied to each thread. */
  readonly setup: unknown
  readonly workers: number
  /** All tasks that will be run, for the expected time. */
  readonly planned: readonly Task[]
  /** The work of a task, relative to the others. */
  readonly workOf: (task: Task) => number
}

type FromThread<Result> = { readonly result: Result } | { readonly error: string }

const reportEveryMs = 10_000

export function startTaskThreads<Task, Result>({
  name,
  module,
  setup,
  workers: count,
  planned,
  workOf,
}: TaskThreadsOptions<Task>): TaskThreads<Task, Result> {
  const workers = Array.from({ length: count }, () => new Worker(module, { workerData: setup }))
  const progress = createProgress(
    name,
    planned.length,
    planned.reduce((sum, task) => sum + workOf(task), 0),
  )

  async function runOne(worker: Worker, task: Task): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const answered = (message: FromThread<Result>): void => {
      if ('error' in message) reject(new Error(message.error))
      else resolve(message.result)
    }
    worker.once('message', answered).once('error', reject)
    worker.postMessage(task)
    try {
      return await promise
    } finally {
      worker.off('error', reject)
      progress.add(workOf(task))
    }
  }

  return {
    async run(tasks) {
      const results: Result[] = []
      let next = 0
      await Promise.all(
        workers.map(async (worker) => {
          for (let i = next++; i < tasks.length; i = next++) results[i] = await runOne(worker, tasks[i]!)
        }),
      )
      return results
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}

/** `work` is that of all tasks together, in any unit. */
export function createProgress(name: string, tasks: number, work: number) {
  const begun = performance.now()
  let reported = begun
  let doneTasks = 0
  let doneWork = 0
  return {
    add(of: number): void {
      doneTasks++
      doneWork += of
      const now = performance.now()
      if (now - reported < reportEveryMs && doneTasks > 1) return
      reported = now
      const left = ((now - begun) / doneWork) * (work - doneWork)
      process.stderr.write(
        `${name}: ${doneTasks} of ${tasks} after ${durationOf(now - begun)}, about ${durationOf(left)} left\n`,
      )
    },
  }
}

export function durationOf(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}

/** To be called by the module of the threads: prepares once, then does the work of each task. */
export function answerTasks<Setup, Task>(prepare: (setup: Setup) => (task: Task) => Promise<unknown>): void {
  const work = prepare(workerData as Setup)
  parentPort!.on('message', (task: Task) => {
    work(task).then(
      (result) => parentPort!.postMessage({ result }),
      (error: unknown) => parentPort!.postMessage({ error: String((error as Error).stack ?? error) }),
    )
  })
}
