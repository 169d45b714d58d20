/**
 * Publishes a prediction of each virtual sensor at its interval. Those that are due together share a
 * request. A failed request is repeated with the values of that time.
 */
import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { BrokerPort } from '#contract'
import { isList, isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { entityIds } from '#plugins/virtual-sensors/entities/entity-names.ts'
import { predictedObservation, virtualEntities } from '#plugins/virtual-sensors/entities/virtual-entities.ts'
import { predict } from '#plugins/virtual-sensors/families/prediction.ts'
import type { SourceReadings } from '#plugins/virtual-sensors/state/source-readings.ts'
import {
  descriptionOf,
  sourcesOf,
  type VirtualSensor,
} from '#plugins/virtual-sensors/state/virtual-sensor.ts'
import { type ModelCandidates, withModelShare } from '#plugins/virtual-sensors/training/model-choice.ts'

export interface PredictionsPorts extends ClockAndLog {
  readonly broker: BrokerPort
  readonly readings: SourceReadings
  readonly models: ModelCandidates
}

export interface Predictions {
  /** Publishes from now on; the first prediction is due after `waitMs`. */
  add(sensor: VirtualSensor, waitMs: number): void
  /** Settles when no prediction of it is being written. */
  remove(sensor: VirtualSensor): Promise<void>
  close(): Promise<void>
}

const operations = '/ngsi-ld/v1/entityOperations'

export function createPredictions({ broker, readings, models, clock, log }: PredictionsPorts): Predictions {
  /** When the next prediction is due, monotonic ms. */
  const dueAt = new Map<VirtualSensor, number>()
  let timer: NodeJS.Timeout | undefined
  let publishing: Promise<void> | undefined
  let isClosed = false

  function wait(): void {
    clearTimeout(timer)
    if (isClosed || publishing !== undefined || dueAt.size === 0) return
    const next = Math.min(...dueAt.values())
    timer = setTimeout(begin, Math.max(0, next - clock.monotonic())).unref()
  }

  function begin(): void {
    const now = clock.monotonic() + limits.virtualGatherMs.value
    const due = [...dueAt].filter(([, at]) => at <= now)
    for (const [sensor, at] of due) {
      const intervalMs = sensor.document.choices.updateInterval * 1000
      // After a pause of the machine, what was missed is not published late.
      dueAt.set(sensor, Math.max(at + intervalMs, clock.monotonic() + intervalMs / 2))
    }
    publishing = publish(due.map(([sensor]) => sensor))
      .catch((error: unknown) => {
        log.error('plugin.failed', { plugin: 'virtual-sensors', during: 'publishing', error })
      })
      .finally(() => {
        publishing = undefined
        wait()
      })
  }

  /** The observation entity of a sensor now; undefined if no source has a value. */
  async function observationOf(sensor: VirtualSensor): Promise<JsonObject | undefined> {
    const { id, model, document } = sensor
    const at = clock.now()
    const latest = sourcesOf(sensor).map(readings.latest)
    const blended = model && predict(model, latest, at)
    if (blended === undefined || !Number.isFinite(blended.value)) {
      sensor.trouble = 'no source has a usable value'
      return undefined
    }
    const found = await withModelShare(models, model!, { blended, latest, at })
    return predictedObservation(id, { ...found, at, unitCode: document.unitCode })
  }

  async function publish(sensors: readonly VirtualSensor[]): Promise<void> {
    const found = await Promise.all(
      sensors.map(async (sensor) => ({ sensor, entity: await observationOf(sensor) })),
    )
    const entries = found.flatMap(({ sensor, entity }) => (entity === undefined ? [] : [{ sensor, entity }]))
    if (entries.length === 0) return
    const outcome = await write(
      'update',
      entries.map(({ entity }) => entity),
    )
    for (const { sensor, entity } of entries) {
      const reason = outcome(entityIds(sensor.id).observation)
      sensor.trouble = reason === 'missing' ? await restore(sensor, entity) : reason
      if (sensor.trouble !== undefined) retry(sensor)
    }
  }

  /** Creates the entities again, which somebody deleted without stopping the virtual sensor. */
  async function restore(sensor: VirtualSensor, entity: JsonObject): Promise<string | undefined> {
    log.warn('virtual-sensors.entities-gone', { broker: broker.address, sensor: sensor.id })
    const outcome = await write('upsert?options=update', [...virtualEntities(descriptionOf(sensor)), entity])
    return outcome(sensor.id) ?? outcome(entityIds(sensor.id).observation)
  }

  function retry(sensor: VirtualSensor): void {
    const due = dueAt.get(sensor)
    if (due !== undefined) dueAt.set(sensor, Math.min(due, clock.monotonic() + limits.virtualRetryMs.value))
  }

  /** Returns the reason of each id that was not written; `missing` if the entity does not exist. */
  async function write(
    operation: string,
    entities: readonly JsonObject[],
  ): Promise<(id: string) => string | undefined> {
    const answer = await broker.exchange({
      method: 'POST',
      path: `${operations}/${operation}`,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(entities),
    })
    if ('failure' in answer) return () => answer.reason
    const { status, text } = answer
    if (status === 404) return () => 'missing'
    if (status < 300 && status !== 207) return () => undefined
    const body = status === 207 ? parsedJson(text) : undefined
    if (!isObject(body)) return () => `answered with ${status}: ${text.slice(0, 300)}`
    const errors = isList(body['errors']) ? body['errors'].filter(isObject) : []
    const reasons = new Map(errors.map(({ entityId, error }) => [entityId, reasonOf(error)]))
    return (id) => reasons.get(id)
  }

  return Object.freeze({
    add(sensor, waitMs) {
      dueAt.set(sensor, clock.monotonic() + waitMs)
      wait()
    },
    async remove(sensor) {
      dueAt.delete(sensor)
      await publishing
      wait()
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      await publishing
    },
  } satisfies Predictions)
}

function reasonOf(error: unknown): string {
  const text = JSON.stringify(error) ?? ''
  return text.includes('ResourceNotFound') ? 'missing' : text.slice(0, 300)
}
