/** The worker thread of `npm run eval:virtual`: evaluates one target after the other. */
import { openResultCache } from './result-cache.ts'
import { sensorSets } from './sensor-sets.ts'
import { answerTasks } from './task-threads.ts'
import { evaluateNewTarget, evaluateTarget } from './virtual-targets.ts'

export interface VirtualThreadSetup {
  readonly data: string
  /** The only family to choose from. */
  readonly family: string | undefined
  readonly cache: string | undefined
}

export interface VirtualTask {
  /** Whether the target has a history. */
  readonly kind: 'trained' | 'new'
  /** The name of the set. */
  readonly set: string
  readonly index: number
}

const code = [
  'plugins/virtual-sensors/families',
  'plugins/virtual-sensors/sources',
  'runtime/statistics',
  'scripts/sensor-sets.ts',
  'scripts/virtual-targets.ts',
]

answerTasks(({ data, family, cache: folder }: VirtualThreadSetup) => {
  const sets = sensorSets(data)
  const cache = openResultCache(folder, code)
  return ({ kind, set: name, index }: VirtualTask) => {
    const set = sets.find((one) => one.name === name)!
    const target = set.sensors[index]!
    return cache.resultOf([kind, set, index, family], async () =>
      kind === 'new' ? evaluateNewTarget(set, target) : evaluateTarget(set, target, family),
    )
  }
})
