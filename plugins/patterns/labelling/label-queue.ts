/**
 * The windows that wait for the label of an ONNX model. They are labelled in the order of their arrival, many
 * in one call, and stay in the queue until their Event is with the writer. While a model cannot run, its
 * windows wait; beyond the ceiling the oldest is skipped and counted. The owner saves the queue.
 */
import { limits } from '#base/limits/limits.ts'
import { toGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { ModelsPort } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { eventEntity } from '#plugins/patterns/events/event-entity.ts'
import { classOf } from '#plugins/patterns/models/onnx-model.ts'

/** A window without a label. */
export interface WaitingWindow {
  /** The id of its Event. */
  readonly id: string
  /** Id of the registered model. */
  readonly model: string
  readonly streams: readonly string[]
  readonly start: number
  readonly end: number
  readonly features: Float32Array
}

export interface LabelQueuePorts {
  readonly models: Pick<ModelsPort, 'run' | 'onChange'>
  /** Writes an Event; undefined deletes it. */
  readonly publish: (id: string, entity: JsonObject | undefined) => void
  /** Resolves when there is room for more Events. */
  readonly room: () => Promise<void>
  readonly log: Log
}

/** A registered model with an ONNX model. */
export interface LabelledModel {
  readonly id: string
  /** Name of the ONNX model. */
  readonly name: string
  readonly nameOf: (label: string | number) => string
}

/** Figures of a model since the start. */
export interface LabelFigures {
  readonly waitingWindows: number
  /** Dropped, because too many waited while the model could not run. */
  readonly skippedWindows: number
  /** For these the model gave no probabilities; they have no Event. */
  readonly unlabelledWindows: number
  /** Why the model cannot run. */
  readonly modelError: string | null
}

interface Followed {
  readonly model: LabelledModel
  /** By id of the Event, in order of arrival. */
  readonly waiting: Map<string, WaitingWindow>
  isWorking: boolean
  timer: NodeJS.Timeout | undefined
  failures: number
  reason: string | undefined
  skipped: number
  unlabelled: number
}

export type LabelQueue = ReturnType<typeof createLabelQueue>

export function createLabelQueue({ models, publish, room, log }: LabelQueuePorts) {
  const all = new Map<string, Followed>()
  const waiters = new Set<() => void>()
  /** Changes since the last save: windows that wait, and undefined for those that do not any more. */
  let unsaved = new Map<string, WaitingWindow | undefined>()
  let size = 0
  let isClosed = false
  const following = models.onChange(() => {
    for (const one of all.values()) wake(one)
  })

  function change(id: string, window: WaitingWindow | undefined): void {
    // The saved order is that of the last change.
    unsaved.delete(id)
    unsaved.set(id, window)
  }

  function remove(one: Followed, id: string): void {
    if (!one.waiting.delete(id)) return
    size--
    change(id, undefined)
  }

  function add(window: WaitingWindow): void {
    const one = all.get(window.model)
    if (one === undefined) return
    remove(one, window.id)
    one.waiting.set(window.id, window)
    size++
    change(window.id, window)
    if (one.reason === undefined) wake(one)
  }

  function release(): void {
    for (const waiter of waiters) waiter()
    waiters.clear()
  }

  function wake(one: Followed): void {
    clearTimeout(one.timer)
    if (isClosed || one.isWorking || one.waiting.size === 0) return
    one.isWorking = true
    void work(one).finally(() => {
      one.isWorking = false
      release()
      if (one.reason !== undefined) retryLater(one)
      else wake(one)
    })
  }

  function retryLater(one: Followed): void {
    if (isClosed) return
    const pauseMs = Math.min(limits.patternRetryMs.value, firstPauseMs * 2 ** one.failures)
    one.timer = setTimeout(() => wake(one), pauseMs).unref()
  }

  /** Labels windows until none waits or the model fails. */
  async function work(one: Followed): Promise<void> {
    while (!isClosed && one.waiting.size > 0) {
      await room()
      const batch = [...one.waiting.values().take(limits.patternBatchWindows.value)]
      if (batch.length === 0) return
      let probabilities: Float32Array
      try {
        probabilities = await models.run(one.model.name, joined(batch), batch.length)
      } catch (error) {
        one.failures++
        one.reason = toGatewayError(error).message
        return
      }
      // When the gateway ends, the windows wait on disk.
      if (isClosed) return
      Object.assign(one, { failures: 0, reason: undefined })
      const classes = probabilities.length / batch.length
      for (const [i, window] of batch.entries())
        settle(one, window, probabilities.subarray(i * classes, (i + 1) * classes))
      release()
    }
  }

  function settle(one: Followed, window: WaitingWindow, probabilities: Float32Array): void {
    const { id, streams, start, end } = window
    // It changed or ended during the call.
    if (one.waiting.get(id) !== window) return
    remove(one, id)
    const found = classOf(probabilities)
    if (found === undefined) {
      one.unlabelled++
      publish(id, undefined)
      return
    }
    const { label, confidence } = found
    publish(id, eventEntity(id, streams, { start, end, label: one.model.nameOf(label), confidence }))
  }

  /** Skips the oldest windows of a model that cannot run, until there is room. */
  function skipFrom(one: Followed): void {
    const { model, reason } = one
    if (one.skipped === 0) log.warn('patterns.windows-skipped', { model: model.id, onnx: model.name, reason })
    for (const id of [...one.waiting.keys().take(size - limits.patternUnlabelledMax.value + 1)]) {
      remove(one, id)
      one.skipped++
    }
  }

  const isFull = (): boolean => !isClosed && size >= limits.patternUnlabelledMax.value

  return Object.freeze({
    follow(model: LabelledModel): void {
      all.set(model.id, {
        model,
        waiting: new Map(),
        isWorking: false,
        timer: undefined,
        failures: 0,
        reason: undefined,
        skipped: 0,
        unlabelled: 0,
      })
    },
    unfollow(id: string): void {
      const one = all.get(id)
      if (one === undefined) return
      clearTimeout(one.timer)
      for (const event of [...one.waiting.keys()]) remove(one, event)
      all.delete(id)
      release()
    },
    /** Adds a window; it replaces one with the same Event. */
    add,
    /** Removes a window that ended. */
    drop(model: string, id: string): void {
      const one = all.get(model)
      if (one !== undefined) remove(one, id)
    },
    /** Resolves when there is room for more windows. Those of models that cannot run make room. */
    async room(): Promise<void> {
      while (isFull()) {
        const failing = [...all.values()].filter(({ reason }) => reason !== undefined)
        const [largest] = failing.toSorted((a, b) => b.waiting.size - a.waiting.size)
        if (largest !== undefined && largest.waiting.size > 0) skipFrom(largest)
        else await new Promise<void>((resolve) => waiters.add(resolve))
      }
    },
    /** Takes saved windows, before others. */
    restore(windows: readonly WaitingWindow[]): void {
      for (const window of windows) add(window)
      unsaved = new Map()
    },
    unsaved: (): ReadonlyMap<string, WaitingWindow | undefined> => unsaved,
    /** To be called when the unsaved changes are on disk. */
    forgetUnsaved(): void {
      unsaved = new Map()
    },
    figures(id: string): LabelFigures | undefined {
      const one = all.get(id)
      return (
        one && {
          waitingWindows: one.waiting.size,
          skippedWindows: one.skipped,
          unlabelledWindows: one.unlabelled,
          modelError: one.reason ?? null,
        }
      )
    },
    size: () => size,
    complaints(): readonly string[] {
      return [...all.values()].flatMap(({ model, waiting, skipped, reason }) =>
        reason === undefined
          ? []
          : [`${waiting.size} windows of model ${model.id} wait and ${skipped} were skipped: ${reason}`],
      )
    },
    close(): void {
      isClosed = true
      following.close()
      for (const { timer } of all.values()) clearTimeout(timer)
      release()
    },
  })
}

const firstPauseMs = 100

/** The features of windows one after the other. */
function joined(batch: readonly WaitingWindow[]): Float32Array {
  const width = batch[0]!.features.length
  const rows = new Float32Array(batch.length * width)
  for (const [i, { features }] of batch.entries()) rows.set(features, i * width)
  return rows
}
