/**
 * `selvedge decode`: decodes a payload with the firmware bridges as the intake would. It shows readings,
 * problems, and the entities of a new device. It writes nothing and needs no running gateway.
 */
import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { systemClock } from '#base/time/clock.ts'
import { bridges } from '#bridges/registry.ts'
import { type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { DecodeProblem, Frame, Reading } from '#contract'
import { type Claimant, createClaims } from '#intake/claims.ts'
import { type FirstReading, siteEntities } from '#intake/site-model.ts'
import { judgeReading } from '#intake/time-rules.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { settingsOrReport } from './settings-options.ts'

interface Outcome {
  /** Undefined if no bridge reads the frame. */
  readonly bridge: string | undefined
  readonly readings: readonly Reading[]
  readonly problems: readonly DecodeProblem[]
  readonly entities: readonly Entity[]
}

/** Exit code 0 if the whole payload was decoded, 1 if nothing or only a part was. */
export async function decode(given: GivenOptions, terminal: Terminal): Promise<number> {
  const topic = given.text('topic') ?? ''
  if (topic === '' && given.text('content-type') === undefined) {
    throw new GatewayError('cli.usage', '--topic or --content-type is required')
  }
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const frame: Frame = {
    topic,
    payload: await payloadOf(given, terminal),
    contentType: given.text('content-type'),
    receivedAt: systemClock.now(),
    retained: given.has('retained'),
    transport: topic === '' ? 'http' : 'mqtt',
  }
  const outcome = outcomeOf(frame, loaded.settings)
  terminal.out(given.has('json') ? `${JSON.stringify(outcome, undefined, 2)}\n` : outcomeText(outcome))
  const isWhole = outcome.bridge !== undefined && outcome.readings.length > 0 && outcome.problems.length === 0
  return isWhole ? exitCodes.ok : exitCodes.failure
}

async function payloadOf(given: GivenOptions, { input }: Terminal): Promise<Uint8Array> {
  const text = given.text('payload')
  const file = given.text('file')
  if (text !== undefined && file !== undefined)
    throw new GatewayError('cli.usage', '--payload and --file exclude each other')
  if (text !== undefined) return Buffer.from(text)
  if (file === undefined) return buffer(input)
  try {
    return readFileSync(file)
  } catch (error) {
    throw new GatewayError('cli.usage', `--file: ${(error as Error).message}`, {}, error)
  }
}

function outcomeOf(frame: Frame, settings: Settings): Outcome {
  const claimant = createClaims(bridges, settings.bridges).find(frame)
  if (claimant === undefined) {
    const problems = [
      {
        reason: `no bridge reads the topic ${JSON.stringify(frame.topic)}; decisions of a gateway are not considered`,
      },
    ]
    return { bridge: undefined, readings: [], problems, entities: [] }
  }
  if (frame.payload.length > limits.frameBytesMax.value) {
    const problems = [{ reason: `the frame has more than ${limits.frameBytesMax.value} bytes` }]
    return { bridge: claimant.name, readings: [], problems, entities: [] }
  }
  const { readings, problems } = claimant.decode(frame)
  const firsts: FirstReading[] = []
  const refused: DecodeProblem[] = []
  for (const reading of readings) {
    const verdict = judgeReading(reading, frame)
    if (verdict.refused === undefined) firsts.push({ reading, ...verdict })
    else refused.push({ reason: verdict.reason, field: reading.field })
  }
  const entities = entitiesOf(firsts, frame, claimant, settings)
  return { bridge: claimant.name, readings, problems: [...problems, ...refused], entities }
}

/** The entities of the first reading of each field, per device, as in provisioning. */
function entitiesOf(
  firsts: readonly FirstReading[],
  frame: Frame,
  { format }: Claimant,
  settings: Settings,
): Entity[] {
  const { devices, shareObservableProperty } = settings.provisioning
  const address = {
    endpoint:
      frame.transport === 'http'
        ? `http://${settings.host}:${settings.http.port}`
        : `mqtt://${settings.host}:${settings.mqtt.port}`,
    interfaceType: frame.transport === 'http' ? 'HTTP' : 'MQTT',
    topic: frame.topic,
    format,
  }
  const byDevice = Map.groupBy(firsts, ({ reading }) => reading.device)
  return [...byDevice].flatMap(([device, all]) => {
    const fields = [
      ...new Map(all.toReversed().map((first) => [first.reading.field, first])).values(),
    ].toReversed()
    return siteEntities({ device, fields, address, declared: devices[device] }, { shareObservableProperty })
  })
}

function outcomeText({ bridge, readings, problems, entities }: Outcome): string {
  const readingRows = readings.map(({ device, field, value, unitCode, unitText, observedAt }) => [
    `${device} ${field}`,
    [
      JSON.stringify(value),
      unitCode ?? unitText ?? '',
      observedAt === undefined ? '(no time: time of reception)' : timeText(observedAt),
    ].join(' '),
  ])
  const problemRows = problems.map(({ field, reason }) => [field ?? 'payload', reason])
  const entityRows = entities.map(({ type, id }) => [String(type).replace(/^.*[/#]/, ''), id])
  return [
    `Bridge: ${bridge ?? 'none'}\n`,
    ...section('Readings', readingRows),
    ...section('Problems', problemRows),
    ...section('Entities of a new device', entityRows),
  ].join('\n')
}

function section(title: string, rows: readonly (readonly string[])[]): string[] {
  return rows.length === 0 ? [] : [`${title}:\n${table(rows)}`]
}

function timeText(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? `${ms} ms` : date.toISOString()
}
