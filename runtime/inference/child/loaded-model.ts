/**
 * A model in the inference process. Loading checks everything that could make its results wrong or harmful:
 * size, hash, operators (the list is `onnx/allowed-operators.ts`), shapes, and golden vectors. The file is
 * read once, so that the checked bytes are the loaded ones.
 */
import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import onnxruntime, { type InferenceSession, type Tensor } from 'onnxruntime-node'
import { limits } from '#base/limits/limits.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import { rowNumbers } from '#config/schema/model-rows.ts'
import type { ModelDocument } from '#config/schema/model-schema.ts'
import { allowedOperators } from '#inference/onnx/allowed-operators.ts'
import { type GraphTensor, readGraph } from '#inference/onnx/graph-reader.ts'
import { float32 } from '#inference/onnx/onnx-fields.ts'
import { compareGolden, parseGolden } from './golden-vectors.ts'
import type { ModelTimes } from './inference-protocol.ts'

/** One thread, and no memory kept for later calls: the models are small, and the board has other work. */
const sessionOptions = {
  executionProviders: ['cpu'],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  executionMode: 'sequential',
  enableCpuMemArena: false,
  enableMemPattern: false,
  // Errors are thrown; warnings of the runtime say nothing to an operator.
  logSeverityLevel: 3,
} as const satisfies InferenceSession.SessionOptions

export interface LoadedModel {
  /** @param inputs rows of all input tensors, one after the other. */
  run(inputs: Float32Array, rows: number): Promise<Float32Array>
  measure(): Promise<ModelTimes>
  unload(): Promise<void>
}

/** @throws model.invalid with file and reason. */
export async function loadModel(folder: string, document: ModelDocument): Promise<LoadedModel> {
  try {
    return await load(folder, document)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const at =
      isGatewayError(error) && /^(golden\.json|card\.md)/.test(reason) ? reason : `model.onnx: ${reason}`
    throw new GatewayError('model.invalid', `${folder}: ${at}`, {}, error)
  }
}

async function load(folder: string, document: ModelDocument): Promise<LoadedModel> {
  readBounded(join(folder, 'card.md'), 'card.md', limits.modelCardBytes.value)
  const file = readBounded(join(folder, 'model.onnx'), '', limits.modelFileBytes.value)
  const digest = createHash('sha256').update(file).digest('hex')
  if (digest !== document.sha256)
    throw invalid(`its SHA-256 is ${digest}, model.json expects ${document.sha256}`)
  checkGraph(file, document)
  const golden = parseGolden(
    readBounded(join(folder, 'golden.json'), 'golden.json', limits.modelGoldenBytes.value).toString('utf8'),
    { input: rowNumbers(document.inputs), output: rowNumbers(document.outputs) },
  )
  const session = await onnxruntime.InferenceSession.create(file, sessionOptions)
  try {
    const run = runner(session, document)
    const rows = golden.vectors.length
    compareGolden(golden, await run(joined(golden.vectors.map(({ input }) => input)), rows))
    // A row has one result, alone or in a batch.
    const [first] = golden.vectors
    compareGolden({ ...golden, vectors: [first!] }, await run(first!.input.slice(), 1))
    return { run, measure: () => measure(run, first!.input), unload: () => session.release() }
  } catch (error) {
    await session.release()
    throw error
  }
}

/** @throws model.invalid if the file is missing, larger than allowed, or no regular file. */
function readBounded(path: string, name: string, most: number): Buffer {
  const prefix = name === '' ? '' : `${name}: `
  let descriptor: number
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw invalid(
      `${prefix}${code === 'ENOENT' ? 'the file is missing' : `the file cannot be read (${code})`}`,
    )
  }
  try {
    const status = fstatSync(descriptor)
    if (!status.isFile()) throw invalid(`${prefix}expected a regular file`)
    if (status.size > most)
      throw invalid(`${prefix}the file has ${status.size} bytes, at most ${most} are allowed`)
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function checkGraph(file: Uint8Array, { inputs, outputs }: ModelDocument): void {
  const graph = readGraph(file)
  for (const { domain, operator } of graph.operators) {
    if (allowedOperators.get(domain)?.has(operator) !== true)
      throw invalid(`operator ${domain === '' ? '' : `${domain}.`}${operator} is not allowed`)
  }
  for (const { name } of graph.inputs) {
    if (!inputs.some((one) => one.name === name)) throw invalid(`model.json does not list the input ${name}`)
  }
  for (const one of inputs) checkTensor('input', one, graph.inputs)
  for (const one of outputs) checkTensor('output', one, graph.outputs)
}

function checkTensor(
  kind: 'input' | 'output',
  { name, shape }: ModelDocument['inputs'][number],
  tensors: readonly GraphTensor[],
): void {
  const found = tensors.find((one) => one.name === name)
  if (found === undefined) throw invalid(`it has no ${kind} ${name}`)
  if (found.element !== float32) throw invalid(`${kind} ${name} is not of type float32`)
  const { shape: given } = found
  if (given === undefined) {
    if (kind === 'output') return
    throw invalid(`${kind} ${name} has no shape`)
  }
  if (given[0] !== null)
    throw invalid(`${kind} ${name}: the first dimension, the number of rows, must be symbolic`)
  const isSame =
    given.length === shape.length && given.every((size, i) => i === 0 || size === null || size === shape[i])
  if (!isSame)
    throw invalid(
      `${kind} ${name} has the shape ${JSON.stringify(given)}, model.json expects ${JSON.stringify(shape)}`,
    )
}

/** Feeds rows to the tensors of a session: scales them, splits them by input, and joins the outputs. */
function runner(session: InferenceSession, { inputs, outputs, scaler }: ModelDocument): LoadedModel['run'] {
  const width = rowNumbers(inputs)
  const outputNames = outputs.map(({ name }) => name)
  const scale = scaler === undefined ? (given: Float32Array) => given : scaling(scaler, width)
  return async (given, rows) => {
    const scaled = scale(given)
    const feeds: Record<string, Tensor> = {}
    let from = 0
    for (const one of inputs) {
      const size = rowNumbers([one])
      const numbers = size === width ? scaled : columnsOf(scaled, { rows, width, from, size })
      feeds[one.name] = new onnxruntime.Tensor('float32', numbers, [
        rows,
        ...(one.shape.slice(1) as number[]),
      ])
      from += size
    }
    const results = await session.run(feeds, outputNames)
    return outputsOf(results, outputs, rows)
  }
}

function scaling({ mean, deviation }: NonNullable<ModelDocument['scaler']>, width: number) {
  const means = Float64Array.from({ length: width }, (_, i) => mean[mean.length === 1 ? 0 : i]!)
  const deviations = Float64Array.from(means, (_, i) => deviation[deviation.length === 1 ? 0 : i]!)
  return (given: Float32Array): Float32Array =>
    Float32Array.from(given, (number, i) => (number - means[i % width]!) / deviations[i % width]!)
}

interface Columns {
  readonly rows: number
  readonly width: number
  readonly from: number
  readonly size: number
}

function columnsOf(numbers: Float32Array, { rows, width, from, size }: Columns): Float32Array {
  const columns = new Float32Array(rows * size)
  for (let row = 0; row < rows; row++)
    columns.set(numbers.subarray(row * width + from, row * width + from + size), row * size)
  return columns
}

function outputsOf(
  results: InferenceSession.OnnxValueMapType,
  outputs: ModelDocument['outputs'],
  rows: number,
): Float32Array {
  const width = rowNumbers(outputs)
  const all = outputs.length === 1 ? undefined : new Float32Array(rows * width)
  let from = 0
  for (const one of outputs) {
    const size = rowNumbers([one])
    const { data } = results[one.name] as Tensor
    if (!(data instanceof Float32Array) || data.length !== rows * size)
      throw invalid(
        `output ${one.name} has ${data.length / rows} numbers per row, model.json expects ${size}`,
      )
    if (all === undefined) return data
    for (let row = 0; row < rows; row++)
      all.set(data.subarray(row * size, (row + 1) * size), row * width + from)
    from += size
  }
  return all!
}

const joined = (rows: readonly Float32Array[]): Float32Array =>
  Float32Array.from(rows.flatMap((row) => [...row]))

const batchRows = 256
/** Time for each of both measurements. */
const measureMs = 500

async function measure(run: LoadedModel['run'], row: Float32Array): Promise<ModelTimes> {
  const batch = joined(Array.from({ length: batchRows }, () => row))
  const calls = await timesOf(() => run(row.slice(), 1))
  const batched = await timesOf(() => run(batch.slice(), batchRows))
  const quantile = (times: readonly number[], share: number): number =>
    times[Math.floor(share * (times.length - 1))]!
  return {
    p50: quantile(calls, 0.5),
    p99: quantile(calls, 0.99),
    batchedRow: quantile(batched, 0.5) / batchRows,
    batchRows,
  }
}

/** Times of calls in microseconds, ascending, after some calls that are not counted. */
async function timesOf(call: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  const end = performance.now() + measureMs
  for (let i = 0; i < 300 || (performance.now() < end && i < 20_000); i++) {
    const start = performance.now()
    await call()
    if (i >= 100) times.push((performance.now() - start) * 1000)
  }
  return times.sort((a, b) => a - b)
}

const invalid = (reason: string): GatewayError => new GatewayError('model.invalid', reason)
