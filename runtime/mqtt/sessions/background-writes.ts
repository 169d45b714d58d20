/**
 * Background writes that nobody waits for: acknowledged messages, last-seen times, wills that are no longer
 * needed. Each write has a key; a newer write replaces an older one. One commit writes all of them. It may
 * wait to share a commit with other writes, and is retried until it is on disk.
 */
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Work } from '#broker/commit/work-queue.ts'

export interface BackgroundWrites {
  set(key: string, decide: (stage: Stage) => void): void
  /** Resolves when everything set so far is on disk, or cannot be written. */
  flush(): Promise<void>
}

const retryMs = 1000

export function createBackgroundWrites(door: Pick<Door, 'submit' | 'whenRoom'>): BackgroundWrites {
  const due = new Map<string, (stage: Stage) => void>()
  let taken = new Map<string, (stage: Stage) => void>()
  let busy = false
  let hurried = false
  const idle: (() => void)[] = []

  const work = (urgent: boolean): Work => ({
    urgent,
    bytes: 0,
    decide(stage) {
      for (const [key, decide] of due) taken.set(key, decide)
      due.clear()
      for (const decide of taken.values()) decide(stage)
    },
    answer(error) {
      busy = false
      if (error !== undefined) {
        for (const [key, decide] of taken) if (!due.has(key)) due.set(key, decide)
      }
      taken = new Map()
      if (due.size === 0 || (error !== undefined && hurried)) rest()
      else if (error === undefined) submit()
      else setTimeout(submit, retryMs).unref()
    },
  })

  function submit(): void {
    if (busy || due.size === 0) return
    busy = door.submit(work(hurried))
    if (busy) return
    if (hurried) rest()
    else door.whenRoom(submit)
  }

  function rest(): void {
    for (const action of idle.splice(0)) action()
  }

  return Object.freeze({
    set(key, decide) {
      due.set(key, decide)
      submit()
    },
    async flush() {
      hurried = true
      if (due.size === 0 && !busy) return
      await new Promise<void>((resolve) => {
        idle.push(resolve)
        submit()
      })
    },
  } satisfies BackgroundWrites)
}
