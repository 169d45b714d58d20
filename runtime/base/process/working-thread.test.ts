/** A thread for many tasks: their order, failures, and its end when there is nothing to do. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, expect, it } from 'vitest'
import { createWorkingThread, type WorkingThread } from './working-thread.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-thread-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** The number of the thread, and of its task; some tasks end badly. */
const file = join(folder, 'thread.ts')
writeFileSync(
  file,
  `import { threadId } from 'node:worker_threads'
  import { workInThread } from '${pathToFileURL(join(import.meta.dirname, 'working-thread.ts'))}'
  let count = 0
  workInThread((task) => {
    if (task === 'throw') throw new Error('it failed')
    if (task === 'exit') process.exit(3)
    if (task === 'forever') for (;;);
    return [threadId, ++count, task]
  })`,
)

type Answer = readonly [thread: number, count: number, task: string]
let thread: WorkingThread<string, Answer>
afterEach(() => thread.close())
const open = (idleMs: number, taskMs = 60_000): void => {
  const module = pathToFileURL(file)
  thread = createWorkingThread({ module, resourceLimits: {}, idleMs, taskMs })
}
const run = (task: string): Promise<Answer> => thread.run(() => task)

it('does tasks in order in one thread, and reports what a task threw', async () => {
  open(60_000)
  const answers = await Promise.allSettled(['a', 'throw', 'b'].map(run))
  const [first, second, third] = answers as [
    PromiseFulfilledResult<Answer>,
    PromiseRejectedResult,
    PromiseFulfilledResult<Answer>,
  ]
  expect(second.reason).toMatchObject({ message: 'it failed' })
  expect(first.value.slice(1)).toEqual([1, 'a'])
  expect(third.value).toEqual([first.value[0], 2, 'b'])
})

it('goes on with a new thread after one that died', async () => {
  open(60_000)
  const answers = await Promise.allSettled(['exit', 'a'].map(run))
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
})

it('ends a thread whose task takes too long', async () => {
  open(60_000, 500)
  await expect(run('forever')).rejects.toThrow('took longer than 0.5 s')
})

it('ends its thread when there is nothing to do, and starts another one', async () => {
  open(0)
  const [before] = await run('a')
  // The thread has no task from now on; its timer runs out in a later turn.
  await new Promise((resolve) => setTimeout(resolve, 20))
  const [after, count] = await run('b')
  expect(after).not.toBe(before)
  expect(count).toBe(1)
})

it('rejects what waits when it is closed', async () => {
  open(60_000)
  const waiting = Promise.allSettled(['a', 'b'].map(run))
  await thread.close()
  expect((await waiting).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await expect(run('c')).rejects.toThrow('closed')
})
