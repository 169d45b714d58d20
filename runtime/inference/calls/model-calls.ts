/**
 * Calls of models: queues them, loads the model if necessary, and sends the calls that wait for one model as
 * one batch. A model in whose calls the process died several times is given up.
 */
import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { GatewayError, isGatewayError, toGatewayError } from '#base/register/errors.ts'
import { rowNumbers } from '#config/schema/model-rows.ts'
import type { ModelDocument } from '#config/schema/model-schema.ts'
import type { InferenceLink } from '#inference/child/inference-link.ts'
import type { ModelTimes } from '#inference/child/inference-protocol.ts'

/** A version of a model; another version of the same name is another object. */
export interface CallableModel {
  /** Unique over all versions of all models. */
  readonly key: string
  readonly folder: string
  readonly document: ModelDocument
}

interface WaitingCall {
  readonly inputs: Float32Array
  readonly rows: number
  readonly resolve: (outputs: Float32Array) => void
  readonly reject: (error: GatewayError) => void
}

interface Queue {
  readonly model: CallableModel
  readonly calls: WaitingCall[]
}

export interface ModelCalls {
  run(model: CallableModel, inputs: Float32Array, rows: number): Promise<Float32Array>
  /** Checks and loads a model, unless it is loaded. */
  load(model: CallableModel): Promise<void>
  measure(model: CallableModel): Promise<ModelTimes>
  /** Unloads a model; ends the process if it was the last one. */
  forget(key: string): Promise<void>
  isLoaded(key: string): boolean
}

export interface CallPorts extends Pick<Instruments, 'metrics'> {
  readonly link: InferenceLink
  /** Called when a model must not be used any more. */
  readonly onRefused: (model: CallableModel, error: GatewayError) => void
}

export function createModelCalls({ link, metrics, onRefused }: CallPorts): ModelCalls {
  const answered = metrics.counter('selvedge_inference_calls_total')
  const failed = metrics.counter('selvedge_inference_failed_total')
  const batches = metrics.counter('selvedge_inference_batches_total')
  const queues = new Map<string, Queue>()
  /** Models in the process of `generation`. */
  const loaded = new Set<string>()
  let generation = 0
  const strikes = new Map<string, number>()
  let waitingCalls = 0
  let waitingNumbers = 0
  /** Settles when the requests before have been answered: one is in flight at a time. */
  let previous: Promise<unknown> = Promise.resolve()
  let isPumping = false

  /** Runs an exchange with the process after all others. */
  function inTurn<T>(exchange: () => Promise<T>): Promise<T> {
    const mine = previous.then(exchange)
    previous = mine.catch(() => undefined)
    return mine
  }

  /** Loads a model, and refuses it if its files are wrong or it killed the process too often. */
  async function ensureLoaded(model: CallableModel): Promise<void> {
    const { key, folder, document } = model
    forgetOtherGenerations()
    if (loaded.has(key)) return
    try {
      const message = { kind: 'load', key, folder, document } as const
      await guarded(model, () => link.request(message, 'loaded', limits.inferenceLoadMs.value))
      forgetOtherGenerations()
      loaded.add(key)
    } finally {
      await stopIfUnused()
    }
  }

  /** A process without models has no purpose. */
  async function stopIfUnused(): Promise<void> {
    forgetOtherGenerations()
    if (loaded.size === 0) await link.stop()
  }

  function forgetOtherGenerations(): void {
    if (generation === link.generation() && link.status().pid !== undefined) return
    generation = link.generation()
    loaded.clear()
  }

  async function guarded<T>(model: CallableModel, exchange: () => Promise<T>): Promise<T> {
    try {
      return await exchange()
    } catch (caught) {
      const error = toGatewayError(caught)
      if (error.code === 'model.invalid' || error.code === 'inference.no-runtime') onRefused(model, error)
      if (error.code !== 'inference.ended') throw error
      const count = (strikes.get(model.key) ?? 0) + 1
      strikes.set(model.key, count)
      if (count < limits.modelStrikesMax.value) throw error
      strikes.delete(model.key)
      const reason = `the inference process ended ${count} times in its calls; last: ${error.message}`
      onRefused(model, new GatewayError('model.failed', reason))
      throw error
    }
  }

  /** Sends batches until no call waits. */
  async function pump(): Promise<void> {
    // Calls of the same turn share a batch.
    await Promise.resolve()
    for (;;) {
      const [queue] = queues.values()
      if (queue === undefined) break
      await inTurn(() => runBatch(queue))
    }
    isPumping = false
  }

  async function runBatch(queue: Queue): Promise<void> {
    const { model } = queue
    const batch = nextBatch(queue)
    try {
      const rows = batch.reduce((sum, call) => sum + call.rows, 0)
      await ensureLoaded(model)
      const message = { kind: 'run', key: model.key, rows, inputs: joinedInputs(batch) } as const
      const { outputs } = await guarded(model, () =>
        link.request(message, 'outputs', limits.inferenceCallMs.value),
      )
      strikes.delete(model.key)
      batches.value++
      answered.value += batch.length
      const width = outputs.length / rows
      let from = 0
      for (const call of batch) {
        call.resolve(outputs.slice(from * width, (from + call.rows) * width))
        from += call.rows
      }
    } catch (caught) {
      failed.value += batch.length
      const error = isGatewayError(caught) ? caught : toGatewayError(caught)
      for (const call of batch) call.reject(error)
    }
  }

  /** Removes the calls of the next batch from a queue; the queue moves behind the others. */
  function nextBatch(queue: Queue): WaitingCall[] {
    const { model, calls } = queue
    const { inputs, outputs } = model.document
    const rowsMax = limits.inferenceBatchNumbers.value / Math.max(rowNumbers(inputs), rowNumbers(outputs))
    let count = 0
    let rows = 0
    while (count < calls.length && (count === 0 || rows + calls[count]!.rows <= rowsMax))
      rows += calls[count++]!.rows
    const batch = calls.splice(0, count)
    waitingCalls -= batch.length
    for (const call of batch) waitingNumbers -= call.inputs.length
    queues.delete(model.key)
    if (calls.length > 0) queues.set(model.key, queue)
    return batch
  }

  return Object.freeze({
    async run(model, inputs, rows) {
      const { document } = model
      const width = rowNumbers(document.inputs)
      if (!(rows >= 1) || inputs.length !== rows * width)
        throw new GatewayError(
          'model.failed',
          `${document.name} expects ${width} numbers in each row, got ${inputs.length} in ${rows} rows`,
        )
      const most = limits.inferenceBatchNumbers.value
      if (rows * Math.max(width, rowNumbers(document.outputs)) > most)
        throw new GatewayError('inference.busy', `a call of ${document.name} has more than ${most} numbers`)
      if (
        waitingCalls >= limits.inferenceCallsMax.value ||
        waitingNumbers + inputs.length > limits.inferenceNumbersMax.value
      ) {
        failed.value++
        throw new GatewayError('inference.busy', `${waitingCalls} calls of models are queued`)
      }
      waitingCalls++
      waitingNumbers += inputs.length
      const { promise, resolve, reject } = Promise.withResolvers<Float32Array>()
      const queue = queues.get(model.key) ?? { model, calls: [] }
      queue.calls.push({ inputs, rows, resolve, reject })
      queues.set(model.key, queue)
      if (!isPumping) {
        isPumping = true
        void pump()
      }
      return promise
    },
    load: (model) => inTurn(() => ensureLoaded(model)),
    measure: (model) =>
      inTurn(async () => {
        await ensureLoaded(model)
        const { times } = await guarded(model, () =>
          link.request({ kind: 'measure', key: model.key }, 'measured', limits.inferenceLoadMs.value),
        )
        return times
      }),
    forget: (key) =>
      inTurn(async () => {
        forgetOtherGenerations()
        strikes.delete(key)
        const wasLoaded = loaded.delete(key)
        await stopIfUnused()
        if (wasLoaded && loaded.size > 0)
          await link.request({ kind: 'unload', key }, 'unloaded', limits.inferenceCallMs.value)
      }),
    isLoaded(key) {
      forgetOtherGenerations()
      return loaded.has(key)
    },
  } satisfies ModelCalls)
}

/** One array of the rows of all calls. It is a copy, so that callers may reuse theirs. */
function joinedInputs(batch: readonly WaitingCall[]): Float32Array {
  const joined = new Float32Array(batch.reduce((sum, { inputs }) => sum + inputs.length, 0))
  let at = 0
  for (const { inputs } of batch) {
    joined.set(inputs, at)
    at += inputs.length
  }
  return joined
}
