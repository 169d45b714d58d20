/** The worker thread of `npm run eval:faults`: runs the faults of one series after the other. */
import { type FaultModel, openFaultModel } from './fault-opinions.ts'
import { runSeries, type SeedRange, type SeriesResult } from './fault-runs.ts'
import { faultSeries, faultSets } from './fault-sets.ts'
import { openResultCache } from './result-cache.ts'
import { sensorSets } from './sensor-sets.ts'
import { answerTasks } from './task-threads.ts'

export interface FaultThreadSetup {
  readonly data: string
  readonly seeds: SeedRange
  readonly cache: string | undefined
  /** Folder of the fault model, for the mode `model`. */
  readonly model: string | undefined
}

/** By the stream alone, with estimates from its neighbours, and with these and the opinions of a model. */
export type FaultMode = 'self' | 'all' | 'model'

export interface FaultTask {
  readonly word: string
  readonly index: number
}

export type FaultTaskResult = Readonly<Record<FaultMode, SeriesResult | undefined>>

const estimateCode = [
  'plugins/virtual-sensors/families',
  'plugins/virtual-sensors/sources',
  'runtime/statistics',
  'scripts/fault-estimates.ts',
  'scripts/sensor-sets.ts',
]
const runCode = ['plugins/faults', 'scripts/fault-injection.ts', 'scripts/fault-runs.ts']

answerTasks(({ data, seeds, cache: folder, model: modelFolder }: FaultThreadSetup) => {
  const sets = sensorSets(data)
  const cache = openResultCache(folder, estimateCode)
  const runCache = openResultCache(folder, [...estimateCode, ...runCode, 'scripts/fault-opinions.ts'])
  let opened: Promise<FaultModel> | undefined
  return async ({ word, index }: FaultTask): Promise<FaultTaskResult> => {
    const of = faultSets.find((one) => one.word === word)!
    const series = await faultSeries(of, sets.find(({ name }) => name.startsWith(word))!, { index, cache })
    const run = (mode: FaultMode): Promise<SeriesResult> =>
      runCache.resultOf([series, seeds, mode, mode === 'model' && modelFolder], async () => {
        if (mode === 'model') opened ??= openFaultModel(modelFolder!)
        const used = mode === 'self' ? { ...series, estimates: undefined } : series
        return runSeries(used, { seeds, model: mode === 'model' ? await opened : undefined })
      })
    return {
      self: await run('self'),
      all: await run('all'),
      model: modelFolder === undefined ? undefined : await run('model'),
    }
  }
})
