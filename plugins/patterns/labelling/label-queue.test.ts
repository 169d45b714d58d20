/** The queue of windows that wait for an ONNX model, over the real process that runs models. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { iotStream } from '#contract/vocabulary.ts'
import type { Models } from '#inference/models.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { createPatternStatements, tables } from '#plugins/patterns/groups/pattern-statements.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { modelsIn, writeModel } from '#test/kit/onnx-models.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { createLabelQueue, type LabelQueue, type WaitingWindow } from './label-queue.ts'

const patience = { interval: 20, timeout: 60_000 }
const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })
let folder: string
let models: Models
let queue: LabelQueue
/** Ids of Events with their labels, in the order in which they were published. */
let published: (readonly [id: string, label: unknown])[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-labels-'))
  setLimit('modelScanMs', 50)
  models = modelsIn(folder, log)
  await models.start()
  queue = newQueue()
})
afterEach(async () => {
  queue.close()
  await models.close()
  restoreLimits()
  rmSync(folder, { recursive: true, force: true })
})

function newQueue(): LabelQueue {
  published = []
  const publish = (id: string, entity: JsonObject | undefined): void => {
    const label = entity?.[iotStream.label] as { value: unknown } | undefined
    published.push([id, label?.value])
  }
  const made = createLabelQueue({ models, publish, room: async () => undefined, log })
  for (const id of ['m', 'other'])
    made.follow({ id, name: `${id}-onnx`, nameOf: (label) => `class ${label}` })
  return made
}

/** The class is the larger of two numbers. */
function writeClasses(name: string): void {
  writeModel(join(folder, 'models'), {
    name,
    graph: {
      nodes: [{ operator: 'Softmax', inputs: ['x'], outputs: ['y'], attributes: { axis: 1 } }],
      weights: [],
      inputs: [{ name: 'x', sizes: [2] }],
      outputs: [{ name: 'y', sizes: [2] }],
    },
    document: {
      kind: 'pattern',
      inputs: [{ name: 'x', shape: [null, 2] }],
      outputs: [{ name: 'y', shape: [null, 2] }],
    },
    golden: { tolerance: 1e-5, vectors: [{ input: [1, 1], output: [0.5, 0.5] }] },
  })
}

async function writeUsable(name: string): Promise<void> {
  writeClasses(name)
  await vi.waitFor(() => expect(models.described(name)).toBeDefined(), patience)
}

const windowOf = (end: number, { model = 'm', features = [end % 2, 0.5] } = {}): WaitingWindow => ({
  id: `${model} ${end}`,
  model,
  streams: ['a'],
  start: end - 1,
  end,
  features: Float32Array.from(features),
})
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const labelOf = (end: number): string => `class ${1 - (end % 2)}`

it('labels windows in the order of their arrival, over several calls', async () => {
  setLimit('patternBatchWindows', 4)
  await writeUsable('m-onnx')
  for (const end of numbers(10)) queue.add(windowOf(end))
  await vi.waitFor(() => expect(queue.size()).toBe(0), patience)
  expect(published).toEqual(numbers(10).map((end) => [`m ${end}`, labelOf(end)]))
  expect(queue.figures('m')).toMatchObject({ waitingWindows: 0, skippedWindows: 0, modelError: null })
})

it('labels the newest state of a window, and none that ended', async () => {
  for (const end of [1, 2, 3]) queue.add(windowOf(end))
  queue.add(windowOf(1, { features: [0, 1] }))
  queue.drop('m', 'm 2')
  await writeUsable('m-onnx')
  await vi.waitFor(() => expect(queue.size()).toBe(0), patience)
  expect(published).toEqual([
    ['m 3', 'class 0'],
    ['m 1', 'class 1'],
  ])
})

it('keeps the windows of a call in which the process ended, and labels each once', async () => {
  await writeUsable('m-onnx')
  queue.add(windowOf(0))
  await vi.waitFor(() => expect(published).toHaveLength(1), patience)
  const pid = models.status().pid!
  process.kill(pid, 'SIGSTOP')
  for (const end of [1, 2, 3]) queue.add(windowOf(end))
  process.kill(pid, 'SIGKILL')
  await vi.waitFor(() => expect(queue.size()).toBe(0), patience)
  expect(published).toEqual(numbers(4).map((end) => [`m ${end}`, labelOf(end)]))
})

it('skips and counts the oldest windows of a model that cannot run, while others go on', async () => {
  setLimit('patternUnlabelledMax', 5)
  await writeUsable('other-onnx')
  for (const end of numbers(8)) {
    queue.add(windowOf(end))
    await queue.room()
  }
  queue.add(windowOf(8, { model: 'other' }))
  await vi.waitFor(() => expect(published).toEqual([['other 8', 'class 1']]), patience)
  expect(queue.figures('m')).toMatchObject({
    waitingWindows: 4,
    skippedWindows: 4,
    modelError: 'there is no model m-onnx',
  })
  expect(queue.complaints()).toEqual([
    '4 windows of model m wait and 4 were skipped: there is no model m-onnx',
  ])
  await writeUsable('m-onnx')
  await vi.waitFor(() => expect(queue.size()).toBe(0), patience)
  expect(published.slice(1)).toEqual([4, 5, 6, 7].map((end) => [`m ${end}`, labelOf(end)]))
  expect(queue.complaints()).toEqual([])
})

it('goes on with saved windows', async () => {
  for (const end of [1, 2, 3]) queue.add(windowOf(end))
  queue.drop('m', 'm 2')
  const database = createPluginDatabase(tables)
  const table = createPatternStatements(database)
  const save = (): void => {
    const none = { streams: new Map(), values: [], groups: new Map(), waiting: [] }
    table.save({ ...none, unlabelled: queue.unsaved(), cursor: { position: 1, committed: 1 } })
    queue.forgetUnsaved()
  }
  save()
  queue.add(windowOf(1, { features: [7, 8] }))
  save()
  queue.close()
  queue = newQueue()
  expect(table.unlabelled()).toEqual([windowOf(3), windowOf(1, { features: [7, 8] })])
  queue.restore(table.unlabelled())
  database.close()
  expect([...queue.unsaved()]).toEqual([])
  await writeUsable('m-onnx')
  await vi.waitFor(() => expect(queue.size()).toBe(0), patience)
  expect(published.map(([id]) => id)).toEqual(['m 3', 'm 1'])
  expect([...queue.unsaved()]).toEqual([
    ['m 3', undefined],
    ['m 1', undefined],
  ])
})
