/**
 * Chooses the approaches of streams in a thread, since a fit takes some 20 ms. A detector goes on with
 * its earlier approach meanwhile; each has at most one choice that waits.
 */
import { limits } from '#base/limits/limits.ts'
import { createWorkingThread } from '#base/process/working-thread.ts'
import type { Log } from '#base/register/log.ts'
import type { ApproachChoice, ApproachTask, ChooseApproach } from './approach.ts'

export interface ApproachChooser {
  readonly choose: ChooseApproach
  /** Settles when all choices that were asked for are made. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** Memory of the thread, MB: the longest history and its regressors take about 10. */
const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 64 }

export function createApproachChooser(log: Log): ApproachChooser {
  const file = import.meta.url.endsWith('.ts') ? './approach-thread.ts' : './approach-thread.js'
  const thread = createWorkingThread<ApproachTask, ApproachChoice>({
    module: new URL(file, import.meta.url),
    resourceLimits,
    taskMs: limits.faultsChoiceMs.value,
    idleMs: limits.faultsThreadIdleMs.value,
  })
  let newest: Promise<void> = Promise.resolve()
  let isClosed = false

  return Object.freeze({
    choose(task, adopt) {
      newest = thread.run(task).then(adopt, (error: unknown) => {
        if (!isClosed) log.error('plugin.failed', { plugin: 'faults', during: 'choosing an approach', error })
        adopt(undefined)
      })
    },
    settled: () => newest,
    async close() {
      isClosed = true
      await thread.close()
    },
  } satisfies ApproachChooser)
}
