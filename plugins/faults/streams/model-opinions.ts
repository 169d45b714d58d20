/**
 * Runs the fault models of streams: each sample of a stream with a model waits for the model's opinion and is
 * then judged, in order. The samples that wait are saved with the stream, so a restart judges them, too.
 * Without an opinion, as when the process of the models is down, a sample is judged by the rules alone.
 */
import { limits } from '#base/limits/limits.ts'
import type { ModelDescription, ModelsPort } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createModelRuleState, takeModel } from '#plugins/faults/models/model-rule.ts'
import {
  createWindowState,
  isCoarse,
  newestFeatures,
  runBegin,
  takeWindow,
} from '#plugins/faults/models/model-window.ts'
import { featureCount } from '#plugins/faults/models/window-features.ts'
import type { Match } from '#plugins/faults/rules/finding.ts'
import type { ArrivedSample, FaultStream, ModelRecord } from './fault-stream.ts'

export interface ModelOpinionsPorts {
  readonly models: ModelsPort
  readonly entityOf: (id: string) => Entity | undefined
  /** Judges a sample, with the model's opinion if it has one. */
  readonly judge: (stream: FaultStream, sample: ArrivedSample, opinion?: Match) => void
  /** Called after the record of a stream changed, so that it is saved. */
  readonly changed: (stream: FaultStream) => void
}

export interface ModelOpinions {
  /** Judges a sample, now or when the model has given its opinion. */
  take(stream: FaultStream, sample: ArrivedSample): void
  /** Learns the scale of a stream from its history, oldest first. */
  learn(stream: FaultStream, samples: readonly ArrivedSample[]): void
  /** Continues with the samples that waited when the gateway ended. */
  resume(stream: FaultStream): void
  close(): Promise<void>
}

export function createModelOpinions({ models, entityOf, judge, changed }: ModelOpinionsPorts): ModelOpinions {
  /** The model of each stream, null for none, until models or metadata change. */
  let assigned = new WeakMap<
    FaultStream,
    { readonly model: ModelDescription | null; readonly label: unknown }
  >()
  const working = new Map<FaultStream, Promise<void>>()
  let isClosed = false
  const following = models.onChange(() => {
    assigned = new WeakMap()
  })

  function modelOf(stream: FaultStream): ModelDescription | undefined {
    const { id, metadata } = stream
    const known = assigned.get(stream)
    if (known?.label === metadata) return known.model ?? undefined
    const found = models.assigned({
      kind: 'fault',
      stream: id,
      property: metadata.label,
      entity: entityOf(id),
    })
    const model = found !== undefined && isUsable(found) ? found : undefined
    assigned.set(stream, { model: model ?? null, label: metadata })
    return model
  }

  function recordOf({ record }: FaultStream, { sha256 }: ModelDescription): ModelRecord {
    record.model ??= { window: createWindowState(), rule: createModelRuleState(), sha256, waiting: [] }
    if (record.model.sha256 !== sha256) {
      record.model.rule = createModelRuleState()
      record.model.sha256 = sha256
    }
    return record.model
  }

  /** The row of a sample; undefined while the stream is too young. */
  function rowOf(stream: FaultStream, own: ModelRecord, sample: ArrivedSample): Float32Array | undefined {
    addTo(stream, own, sample)
    const isNewest = own.window.times.at(-1) === sample.time
    return isNewest ? newestFeatures(own.window, stream.metadata.intervalMs) : undefined
  }

  async function opinionOf(stream: FaultStream, sample: ArrivedSample): Promise<Match | undefined> {
    const model = modelOf(stream)
    if (model === undefined) return undefined
    const own = recordOf(stream, model)
    const row = rowOf(stream, own, sample)
    if (row === undefined) return undefined
    try {
      const probabilities = await models.run(model.name, row, 1)
      const classes = model.outputs.map(({ name }) => name)
      const match = takeModel(own.rule, {
        time: sample.time,
        classes,
        probabilities,
        isCoarse: isCoarse(own.window),
      })
      const begin = match?.class === 'stuck' ? runBegin(own.window) : match?.begin
      return match && { ...match, begin: begin!, method: `model:${model.name}@sha256:${model.sha256}` }
    } catch {
      // The models report why they cannot run. The rules go on.
      return undefined
    }
  }

  async function work(stream: FaultStream): Promise<void> {
    for (;;) {
      const waiting = stream.record.model?.waiting
      const sample = waiting?.[0]
      if (waiting === undefined || sample === undefined || isClosed) return
      const opinion = await opinionOf(stream, sample)
      // The ceiling may have dropped it, and the gateway may be closing: then it waits on disk.
      if (isClosed || waiting[0] !== sample) continue
      waiting.shift()
      if (stream.detector === undefined) stream.buffered.push(sample)
      else judge(stream, sample, opinion)
      changed(stream)
    }
  }

  function resume(stream: FaultStream): void {
    const isNeeded = (stream.record.model?.waiting.length ?? 0) > 0
    if (!isNeeded || working.has(stream)) return
    const task = work(stream).finally(() => {
      working.delete(stream)
    })
    working.set(stream, task)
  }

  return Object.freeze({
    take(stream, sample) {
      const model = modelOf(stream)
      const waiting = stream.record.model?.waiting
      if (model === undefined && (waiting === undefined || waiting.length === 0)) return judge(stream, sample)
      const own = model === undefined ? stream.record.model! : recordOf(stream, model)
      own.waiting.push(sample)
      if (own.waiting.length > limits.faultsBufferedMax.value) judge(stream, own.waiting.shift()!)
      changed(stream)
      resume(stream)
    },
    learn(stream, samples) {
      const model = modelOf(stream)
      if (model === undefined) return
      const own = recordOf(stream, model)
      for (const sample of samples.slice(-limits.faultsModelHistoryMax.value)) addTo(stream, own, sample)
    },
    resume,
    async close() {
      isClosed = true
      following.close()
      await Promise.all(working.values())
    },
  } satisfies ModelOpinions)
}

/** Adds a sample to the window, unless it is older than the newest there. */
function addTo({ record }: FaultStream, { window }: ModelRecord, { time, value }: ArrivedSample): void {
  const newest = window.times.at(-1)
  if (newest !== undefined && time <= newest) return
  const begins = record.state === 'fault' ? record.open.map(({ begin }) => begin) : []
  takeWindow(window, { value, time, faultBegin: begins.length === 0 ? undefined : Math.min(...begins) })
}

/** Models with the features of the shipped one, and one output per class, `ok` first. */
function isUsable({ inputNumbers, outputs }: ModelDescription): boolean {
  return (
    inputNumbers === featureCount &&
    outputs[0]?.name === 'ok' &&
    outputs.every(({ shape }) => shape.length === 2 && shape[1] === 1)
  )
}
