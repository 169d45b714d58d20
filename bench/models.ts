/**
 * `npm run bench -- models`: calls of ONNX models, inside the process that runs them and from the gateway's side,
 * beside the bare runtime in this process; and the memory of that process. Models: a linear one of 8 inputs and
 * those of the folder `models`.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { rowNumbers } from '#config/schema/model-rows.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'
import { modelsIn } from '#test/kit/onnx-models.ts'

const top = join(import.meta.dirname, '..')

export async function benchModels({ quick }: { readonly quick: boolean }): Promise<void> {
  const calls = quick ? 500 : 5000
  const program = join(top, 'dist', 'inference-process.js')
  if (!existsSync(program)) throw new TypeError(`${program} is missing: run npm run build`)
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-bench-models-'))
  const models = modelsIn(folder, undefined, {
    shipped: join(top, 'models'),
    program: pathToFileURL(program),
  })
  try {
    await models.start()
    await models.storeLinear(linear)
    const table: object[] = []
    for (const { name, state, reason } of models.list()) {
      if (state === 'refused') throw new TypeError(`${name}: ${reason}`)
      const place = [join(folder, 'models', name), join(top, 'models', name)].find((one) => existsSync(one))!
      table.push({ model: name, ...(await measured(models, place, calls)) })
    }
    process.stdout.write(
      'Microseconds. child: inside the process; bare: the runtime in this process, one row;\n',
    )
    process.stdout.write(
      'alone: one call after the other from the gateway; together: 100 calls at a time, per call.\n',
    )
    console.table(table)
    const { resident } = models.status()
    const loaded = models.list().length
    process.stdout.write(
      `Resident memory of the process with ${loaded} models: ${(resident / 2 ** 20).toFixed(1)} MiB\n`,
    )
  } finally {
    await models.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measured(models: ReturnType<typeof modelsIn>, folder: string, calls: number) {
  const document = await readModelDocument(folder)
  const { name, inputs } = document
  const row = new Float32Array(rowNumbers(inputs))
  const inside = await models.measure(name)
  const bare = await bareTimes(folder, document, calls)
  const alone = await timesOf(calls, () => models.run(name, row, 1))
  const together = await timesOf(Math.ceil(calls / 50), () =>
    Promise.all(Array.from({ length: 100 }, () => models.run(name, row, 1))),
  )
  const us = (time: number): number => Math.round(time * 100) / 100
  return {
    'child p50': us(inside.p50),
    'child p99': us(inside.p99),
    'child/row': us(inside.batchedRow),
    'bare p50': us(quantile(bare, 0.5)),
    'alone p50': us(quantile(alone, 0.5)),
    'alone p99': us(quantile(alone, 0.99)),
    'together p50': us(quantile(together, 0.5) / 100),
  }
}

async function bareTimes(
  folder: string,
  { inputs }: Awaited<ReturnType<typeof readModelDocument>>,
  calls: number,
): Promise<number[]> {
  const session = await InferenceSession.create(await readFile(join(folder, 'model.onnx')), {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
  })
  const feeds = () =>
    Object.fromEntries(
      inputs.map((one) => {
        const shape = [1, ...(one.shape.slice(1) as number[])]
        return [one.name, new Tensor('float32', new Float32Array(rowNumbers([one])), shape)]
      }),
    )
  const times = await timesOf(calls, () => session.run(feeds()))
  await session.release()
  return times
}

async function timesOf(count: number, call: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < count + 100; i++) {
    const start = performance.now()
    await call()
    if (i >= 100) times.push((performance.now() - start) * 1000)
  }
  return times.toSorted((a, b) => a - b)
}

const quantile = (times: readonly number[], share: number): number =>
  times[Math.floor(share * (times.length - 1))]!

const linear = {
  name: 'linear-8',
  version: '1',
  kind: 'virtual-sensor',
  coefficients: [1, 2, 3, 4, 5, 6, 7, 8],
  intercept: 0.5,
  scaler: { mean: [1], deviation: [2] },
  licence: 'CC0-1.0',
  card: '# Linear\n',
  examples: [[1, 2, 3, 4, 5, 6, 7, 8]],
} as const
