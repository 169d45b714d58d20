/**
 * The virtual sensors from request to deletion. A state is on disk before its entities are, so that a restart
 * finishes what a kill interrupted: a training begins again, and a deletion goes on.
 */
import { limits } from '#base/limits/limits.ts'
import { createConcurrencyLimit } from '#base/load/concurrency-limit.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { toGatewayError } from '#base/register/errors.ts'
import { timedResult } from '#client/streams/stream-entities.ts'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Contributions } from '#plugins/virtual-sensors/brokers/contributions.ts'
import { entityIds, isVirtual, replacementId } from '#plugins/virtual-sensors/entities/entity-names.ts'
import { shownSensor, virtualEntities } from '#plugins/virtual-sensors/entities/virtual-entities.ts'
import type { VirtualSensorModel } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import type { SensorTable } from '#plugins/virtual-sensors/state/sensor-statements.ts'
import {
  descriptionOf,
  sourcesOf,
  type VirtualSensor,
} from '#plugins/virtual-sensors/state/virtual-sensor.ts'
import {
  candidateModel,
  type ModelCandidates,
  withChosenModel,
} from '#plugins/virtual-sensors/training/model-choice.ts'
import {
  failed,
  failures,
  readTrainingData,
  type TrainingDataPorts,
} from '#plugins/virtual-sensors/training/training-data.ts'
import { createTurns, trainInThread } from '#plugins/virtual-sensors/training/virtual-sensor-trainer.ts'
import { deleteAll, upsertEntities } from './broker-writes.ts'
import { choicesOf, planned, requestOf, sameChoices, type Wish } from './planning.ts'
import type { Predictions } from './predictions.ts'

export interface CreatorPorts extends TrainingDataPorts, ClockAndLog {
  readonly table: SensorTable
  readonly contributions: Contributions
  readonly predictions: Predictions
  readonly models: ModelCandidates
  /** Aborted when the plugin stops. */
  readonly signal: AbortSignal
}

export interface Creator {
  /** Goes on with what is on disk. */
  start(): Promise<void>
  /**
   * Returns the description of the virtual sensor; an existing one is trained anew if its parameters changed.
   * @throws what `planned` throws
   */
  create(wish: Wish): Promise<JsonObject>
  /** @param id of the virtual sensor or of the broken one. @throws ngsi-ld.not-found */
  stop(id: string): Promise<string>
  /**
   * The virtual sensor's id and its model, if it is trained.
   * @param id of the virtual sensor or of the broken one. @throws ngsi-ld.not-found
   */
  modelOf(id: string): { readonly id: string; readonly model: VirtualSensorModel | undefined }
  list(): JsonObject
  status(): readonly JsonObject[]
}

export function createCreator(ports: CreatorPorts): Creator {
  const { broker, entities, table, contributions, predictions, models, clock, log, signal } = ports
  const all = new Map<string, VirtualSensor>()
  const inTurn = createTurns()
  /** Each search reads many sensors and histories; a power cut breaks all sensors of a site at once. */
  const plans = createConcurrencyLimit({
    atOnce: 1,
    waitingMax: limits.virtualPlansMax.value,
    what: 'virtual sensors',
  })
  /** The latest request for each virtual sensor. */
  const requests = new Map<string, Promise<unknown>>()

  /** Requests for a virtual sensor run one after the other. */
  async function alone<T>(id: string, work: () => Promise<T>): Promise<T> {
    const next = (requests.get(id) ?? Promise.resolve()).then(work, work)
    requests.set(id, next)
    try {
      return await next
    } finally {
      if (requests.get(id) === next) requests.delete(id)
    }
  }

  async function create(wish: Wish): Promise<JsonObject> {
    const { id } = wish
    const existing = all.get(id)
    const choices = choicesOf(wish)
    if (existing?.state === 'stopping') await finishStop(existing)
    else if (
      existing !== undefined &&
      existing.state !== 'failed' &&
      sameChoices(existing.document.choices, choices)
    )
      return shownSensor(descriptionOf(existing))
    if (!all.has(id) && all.size >= limits.virtualSensorsMax.value)
      throw failed(`there are ${all.size} virtual sensors; stop one that is not needed`)
    const replaced = [...all.values()].flatMap((one) => one.document.target ?? [])
    const document = await plans.run(signal, () => planned(ports, wish, { replaced, signal }))
    if (existing !== undefined && all.has(id)) await halt(existing)
    const sensor: VirtualSensor = {
      id,
      state: 'training',
      document,
      model: undefined,
      progress: 0,
      trouble: undefined,
      facts: existing?.facts ?? {},
      failures: 0,
      followedState: undefined,
      work: new AbortController(),
    }
    all.set(id, sensor)
    table.put(sensor)
    try {
      await upsertEntities(broker, virtualEntities(descriptionOf(sensor)))
    } catch (error) {
      await remove(sensor).catch(() => undefined)
      throw error
    }
    void train(sensor)
    return shownSensor(descriptionOf(sensor))
  }

  /** Ends predictions and subscriptions, before the virtual sensor is trained anew or deleted. */
  async function halt(sensor: VirtualSensor): Promise<void> {
    sensor.work.abort(failed('it was stopped'))
    await predictions.remove(sensor)
    await contributions.unfollow(sensor)
  }

  async function train(sensor: VirtualSensor): Promise<void> {
    try {
      const model = await inTurn(() => trained(sensor))
      sensor.work.signal.throwIfAborted()
      const replaced = subscriptionsOf(sensor)
      Object.assign(sensor, { model, state: 'running', progress: 1, facts: {}, failures: 0 })
      table.put(sensor)
      // Those of an earlier training watch other sources.
      if (replaced.length > 0) await deleteAll(broker, [], replaced).catch(() => undefined)
      await run(sensor, 0)
    } catch (thrown) {
      if (sensor.work.signal.aborted || signal.aborted) return
      const { code, message: error } = toGatewayError(thrown)
      // A broker that does not answer now may do so later.
      if (code === 'peer.unavailable' || code === 'peer.timeout') {
        sensor.trouble = error
        return later(sensor)
      }
      Object.assign(sensor, { state: 'failed', document: { ...sensor.document, error } })
      log.warn('virtual-sensors.training-failed', { sensor: sensor.id, reason: error })
      table.put(sensor)
      trainLater(sensor)
    }
  }

  /** Trains again after a failure: more values may have arrived, or sources may be well again. */
  function trainLater(sensor: VirtualSensor): void {
    const pauseMs = limits.virtualRetrainMs.value * 2 ** sensor.failures++
    later(sensor, Math.min(limits.virtualRetrainMaxMs.value, pauseMs))
  }

  async function trained(sensor: VirtualSensor): Promise<VirtualSensorModel> {
    const stop = AbortSignal.any([signal, sensor.work.signal])
    const data = await readTrainingData(ports, {
      ...requestOf(sensor.document),
      last: limits.virtualTrainedValues.value,
      restMs: limits.virtualRestMs.value,
      signal: stop,
    })
    stop.throwIfAborted()
    const { stream } = entityIds(sensor.id)
    const candidate = candidateModel(models, { property: sensor.document.label, stream })
    const outcome = await trainInThread(
      { ...data, triesModel: candidate !== undefined },
      {
        signal: stop,
        onProgress(share) {
          sensor.progress = share
        },
      },
    )
    if ('failure' in outcome) throw failed(failures[outcome.failure])
    const { model, trials } = outcome
    const { length } = JSON.stringify(model)
    if (length > limits.virtualModelBytes.value)
      throw failed(`the model has ${length} bytes, which is too large`)
    if (candidate === undefined || trials === undefined) return model
    try {
      return await withChosenModel(models, model, { trials, candidate })
    } catch (error) {
      // The virtual sensor does not wait for the process of the models.
      const reason = toGatewayError(error).message
      log.warn('virtual-sensors.model-untested', { sensor: sensor.id, model: candidate.name, reason })
      return model
    }
  }

  async function run(sensor: VirtualSensor, waitMs: number): Promise<void> {
    await contributions.follow(sensor)
    if (!sensor.work.signal.aborted) predictions.add(sensor, waitMs)
  }

  async function stop(given: string): Promise<string> {
    const id = isVirtual(given) ? given : replacementId(given)
    const sensor = all.get(id)
    if (sensor !== undefined) {
      sensor.state = 'stopping'
      table.put(sensor)
      await halt(sensor)
      await finishStop(sensor)
      return id
    }
    // One whose record was lost, such as by a power cut.
    const left = (await entities.byId([id], sosa.Sensor)).has(id)
    if (!left) throw notFound(`there is no virtual sensor with the id ${given}`)
    await deleteAll(broker, Object.values(entityIds(id)), [])
    return id
  }

  async function finishStop(sensor: VirtualSensor): Promise<void> {
    await deleteAll(broker, Object.values(entityIds(sensor.id)), subscriptionsOf(sensor))
    await remove(sensor)
  }

  async function remove(sensor: VirtualSensor): Promise<void> {
    await halt(sensor)
    table.delete(sensor.id)
    if (all.get(sensor.id) === sensor) all.delete(sensor.id)
  }

  async function goOn(sensor: VirtualSensor): Promise<void> {
    if (sensor.state === 'stopping') return finishStop(sensor)
    if (sensor.state === 'training' || sensor.state === 'failed') {
      const document = { ...sensor.document, error: undefined }
      Object.assign(sensor, { state: 'training', document, progress: 0 })
      await upsertEntities(broker, virtualEntities(descriptionOf(sensor)))
      return void train(sensor)
    }
    if (sensor.state === 'running') await run(sensor, await waitOf(sensor))
  }

  /** How long after a restart the next prediction is due. */
  async function waitOf({ id, document }: VirtualSensor): Promise<number> {
    const { observation } = entityIds(id)
    const entity = (await entities.byId([observation], iotStream.StreamObservation)).get(observation)
    const last = entity && timedResult(entity)?.time
    const intervalMs = document.choices.updateInterval * 1000
    return last === undefined ? 0 : Math.min(intervalMs, Math.max(0, last + intervalMs - clock.now()))
  }

  async function start(): Promise<void> {
    // Requests find all of them from the first turn on.
    for (const sensor of table.all()) all.set(sensor.id, sensor)
    for (const sensor of [...all.values()]) {
      await ports.yieldIfDue()
      // A request may have replaced or stopped it meanwhile.
      if (all.get(sensor.id) !== sensor || sensor.work.signal.aborted) continue
      sensor.model = table.model(sensor.id)
      if (sensor.state === 'failed') {
        trainLater(sensor)
        continue
      }
      try {
        await goOn(sensor)
      } catch (error) {
        sensor.trouble = toGatewayError(error).message
        later(sensor)
      }
    }
  }

  /** Tries again to go on after a pause. */
  function later(sensor: VirtualSensor, pauseMs: number = limits.virtualRetryMs.value): void {
    const timer = setTimeout(() => {
      if (signal.aborted || sensor.work.signal.aborted) return
      goOn(sensor).catch((error: unknown) => {
        sensor.trouble = toGatewayError(error).message
        later(sensor)
      })
    }, pauseMs).unref()
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }

  return Object.freeze({
    start,
    create: (wish) => alone(wish.id, () => create(wish)),
    stop: (id) => alone(isVirtual(id) ? id : replacementId(id), () => stop(id)),
    modelOf(given) {
      const sensor = all.get(isVirtual(given) ? given : replacementId(given))
      if (sensor === undefined) throw notFound(`there is no virtual sensor with the id ${given}`)
      return { id: sensor.id, model: sensor.model }
    },
    list: () =>
      Object.fromEntries(
        [...all.values()]
          .filter(({ state }) => state !== 'stopping')
          .map((sensor) => [sensor.id, shownSensor(descriptionOf(sensor))]),
      ),
    status: () => [...all.values()].map(shownState),
  } satisfies Creator)
}

const subscriptionsOf = ({ facts }: VirtualSensor): string[] =>
  Object.values(facts.subscriptions ?? {}).filter((id) => id !== '')

const shownState = (sensor: VirtualSensor): JsonObject => ({
  id: sensor.id,
  state: sensor.state,
  sources: sourcesOf(sensor).map(({ id }) => id),
  error: sensor.document.error ?? sensor.trouble ?? null,
  progress: sensor.progress,
  ...(sensor.model === undefined ? {} : { family: sensor.model.family }),
})
