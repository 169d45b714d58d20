/**
 * `selvedge faults import FOLDER`: adds the histories of the original fault detection to those of a running
 * gateway, from which the detectors then learn. A known value is not added twice, so it can be repeated. It
 * uses the same HTTP interface as any client.
 */
import { createReadStream } from 'node:fs'
import { basename, join } from 'node:path'
import { GatewayError } from '#base/register/errors.ts'
import {
  createHistoryReader,
  type HistoryLine,
  historyName,
  type PastReading,
} from '#cli/data/sensor-history.ts'
import { csvFiles } from '#cli/data/series-folder.ts'
import { createProgress, writeResult } from '#cli/data/transfer.ts'
import { findGateway, type RunningGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { actionOf, type GivenOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { linksOf, sensorOf } from '#client/streams/stream-entities.ts'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'

/** Values of one request. */
const batchOf = 5000
const pageOf = 500
/** Problems that are printed. */
const problemsShownMax = 20
const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'

/** Sensors by the name of their file. */
type Sensors = ReadonlyMap<string, readonly SensorHistory[]>

interface SensorHistory {
  readonly sensor: string
  readonly observations: readonly string[]
}

export async function faults(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [action = '', folder = ''] = given.words
  actionOf(action, ['import'])
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const files = csvFiles(folder)
  const gateway = await findGateway(given, loaded.settings)
  const sensors = await sensorsOf(gateway)
  const progress = createProgress(terminal, 'values')
  const problems = createProblems(terminal)
  let values = 0
  const learning: string[] = []
  for (const file of files) {
    const target = targetOf(file, sensors)
    if (typeof target === 'string') {
      problems.add(`${file}: ${target}`)
      continue
    }
    for await (const batch of batchesOf(join(folder, file))) {
      for (const one of batch) if ('reason' in one) problems.add(`${file} line ${one.line}: ${one.reason}`)
      const readings = batch.filter((one) => 'time' in one)
      await send(gateway, target.observation, readings)
      values += readings.length
      progress.at(values)
    }
    if (await learnAnew(gateway, target.sensor)) learning.push(target.sensor)
    else
      terminal.err(`${file}: fault detection does not learn from it, since ${target.sensor} is not judged\n`)
  }
  const sum = `${values.toLocaleString('en-US')} values imported, ${learning.length} sensors learn`
  const words = problems.count() === 0 ? sum : `${sum}, ${problems.count()} problems`
  const facts = { values, learning, problems: problems.count() }
  return writeResult(given, terminal.out, { words, facts, failed: problems.count() > 0 })
}

function createProblems(terminal: Terminal) {
  let count = 0
  return Object.freeze({
    add(text: string): void {
      count++
      if (count <= problemsShownMax) terminal.err(`${text}\n`)
      if (count === problemsShownMax + 1) terminal.err('further problems are only counted\n')
    },
    count: () => count,
  })
}

/** The Sensor and the observation entity of a file, or the reason why there is none. */
function targetOf(file: string, sensors: Sensors): string | { sensor: string; observation: string } {
  const name = historyName(basename(file).replace(/\.csv$/i, ''))
  const found = sensors.get(name) ?? []
  if (found.length === 0) return `no Sensor with a stream has an id that gives the name ${name}`
  if (found.length > 1)
    return `several Sensors have this name: ${found.map(({ sensor }) => sensor).join(', ')}`
  const { sensor, observations } = found[0]!
  const [observation] = observations
  if (observation === undefined || observations.length > 1)
    return `${sensor} must have one observation entity, it has ${observations.length}`
  return { sensor, observation }
}

async function sensorsOf(gateway: RunningGateway): Promise<Sensors> {
  const ofStream = new Map<string, string>()
  for await (const stream of entitiesOf(gateway, iotStream.IotStream)) {
    const sensor = sensorOf(stream)
    if (sensor !== undefined) ofStream.set(stream.id, sensor)
  }
  const bySensor = new Map<string, string[]>([...ofStream.values()].map((sensor) => [sensor, []]))
  for await (const observation of entitiesOf(gateway, iotStream.StreamObservation)) {
    const [stream] = linksOf(observation, iotStream.belongsTo)
    const [maker] = linksOf(observation, sosa.madeBySensor)
    const sensor = (stream === undefined ? undefined : ofStream.get(stream)) ?? maker
    if (sensor !== undefined) bySensor.get(sensor)?.push(observation.id)
  }
  const rows = [...bySensor].map(([sensor, observations]) => ({ sensor, observations }))
  return Map.groupBy(rows, ({ sensor }) => historyName(sensor))
}

async function* entitiesOf(gateway: RunningGateway, type: string): AsyncGenerator<Entity> {
  const parameters = new URLSearchParams({ type, local: 'true', limit: String(pageOf) })
  let next: string | undefined = `/ngsi-ld/v1/entities?${parameters}`
  while (next !== undefined) {
    const answer = await gateway.request(next)
    if (answer.status !== 200) throw refusalOf(answer, 'querying the streams')
    yield* JSON.parse(answer.text) as Entity[]
    next = /<([^>]*)>;\s*rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
  }
}

async function* batchesOf(path: string): AsyncGenerator<readonly HistoryLine[]> {
  const reader = createHistoryReader()
  let batch: HistoryLine[] = []
  try {
    for await (const piece of createReadStream(path, 'utf8')) {
      batch.push(...reader.read(piece as string))
      while (batch.length >= batchOf) yield batch.splice(0, batchOf)
    }
  } catch (error) {
    throw new GatewayError('cli.usage', `${path} cannot be read: ${(error as Error).message}`, {}, error)
  }
  batch = [...batch, ...reader.end()]
  if (batch.length > 0) yield batch
}

/** Adds values to the history of an observation entity. */
async function send(
  gateway: RunningGateway,
  observation: string,
  readings: readonly PastReading[],
): Promise<void> {
  if (readings.length === 0) return
  const answer = await gateway.request('/ngsi-ld/v1/temporal/entities', {
    method: 'POST',
    contentType: 'application/ld+json',
    body: JSON.stringify({
      id: observation,
      type: iotStream.StreamObservation,
      [sosa.hasSimpleResult]: readings.map(({ time, value }) => ({
        type: 'Property',
        value,
        observedAt: new Date(time).toISOString(),
      })),
      '@context': core,
    }),
  })
  if (answer.status !== 201 && answer.status !== 204) throw refusalOf(answer, `the history of ${observation}`)
}

/** Lets fault detection learn from the whole history; false if it does not judge the sensor. */
async function learnAnew(gateway: RunningGateway, sensor: string): Promise<boolean> {
  const request = (action: string) =>
    gateway.request(`/faults/api/${action}?sensorID=${encodeURIComponent(sensor)}`)
  const status = await request('status')
  const body = status.status === 200 ? parsedJson(status.text) : undefined
  const data = isObject(body) ? body['data'] : undefined
  if (!isObject(data) || data['state'] === 'stopped') return false
  return (await request('restartFaultDetection')).status === 200
}
