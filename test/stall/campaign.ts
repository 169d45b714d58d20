/**
 * The stall campaign: a real gateway is given, one after the other, the largest inputs that its limits allow, at rest or
 * beside steady traffic, and each case says for how long the event loop stood still.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connectAsync } from 'mqtt'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { residentBytes, type Stall, stallOf } from './gauge.ts'

/** What a case is given. */
export interface Site {
  readonly http: HttpClient
  readonly gateway: GatewayProcess
  /** Entities of type Plain that were made at the start. */
  readonly entities: number
}

export interface StallCase {
  readonly name: string
  /** Done before the measurement. */
  prepare?(site: Site): Promise<unknown>
  /** Measured; what it returns is shown. */
  act(site: Site): Promise<unknown>
  /** Removes what would weigh on all cases that follow; not measured. */
  tidy?(site: Site): Promise<unknown>
}

export interface StallRow extends Stall {
  readonly name: string
  readonly outcome: string
}

/** A gateway collects all garbage in less, once its load has ended. */
const quietMs = 30_000

export interface StallOptions {
  readonly entities: number
  readonly isLoaded: boolean
  /** Whether the quality analyser and fault detection run, too. */
  readonly hasAllPlugins: boolean
  /** What to run instead of `bin/selvedge`. */
  readonly program?: string | undefined
  readonly tell: (line: string) => void
}

export async function runStalls(
  cases: readonly StallCase[],
  { entities, isLoaded, hasAllPlugins, program, tell }: StallOptions,
): Promise<readonly StallRow[]> {
  const enabled = String(hasAllPlugins)
  const gateway = await startGatewayProcess({
    env: { SELVEDGE_QUALITY_ENABLED: enabled, SELVEDGE_FAULTS_ENABLED: enabled },
    ...(program === undefined ? {} : { program: [program] }),
  })
  const site: Site = { gateway, http: httpClient(gateway.httpUrl), entities }
  try {
    await createEntities(site)
    const traffic = isLoaded ? await startTraffic(site) : undefined
    const rows: StallRow[] = []
    for (const { name, prepare, act, tidy } of cases) {
      await prepare?.(site)
      let outcome = ''
      const stall = await stallOf(gateway, site.http, async () => {
        // A connection that is closed with the refusal may end the request first.
        outcome = String(await act(site).catch((error: Error) => error.message))
      })
      rows.push({ name, outcome, ...stall })
      tell(lineOf(rows.at(-1)!))
      await tidy?.(site)
    }
    await traffic?.()
    // What is garbage is gone after that, as a quiet gateway collects it: the rest is what is kept.
    await sleep(quietMs)
    tell(`resident after ${quietMs / 1000} quiet seconds: ${Math.round(residentBytes(gateway.pid) / 1e6)} MB`)
    return rows
  } finally {
    await gateway.stop()
  }
}

export const lineOf = ({ name, outcome, delayMs, measuredMs, peakMb, stolenMs }: StallRow): string =>
  [
    name.padEnd(58),
    `${Math.round(delayMs)} ms`.padStart(9),
    `(${Math.round(measuredMs)})`.padStart(8),
    `${Math.round(peakMb)} MB`.padStart(8),
    `stolen ${stolenMs}`.padStart(11),
    ` ${outcome.slice(0, 60)}`,
  ].join(' ')

async function createEntities({ http, entities }: Site): Promise<void> {
  for (let first = 0; first < entities; first += 5000) {
    const batch = Array.from({ length: Math.min(5000, entities - first) }, (_, i) => ({
      id: `urn:x:plain:${first + i}`,
      type: 'Plain',
      n: { type: 'Property', value: first + i },
      s: { type: 'Property', value: `text ${first + i}` },
    }))
    const { status, text } = await http.send('POST', '/ngsi-ld/v1/entityOperations/create', batch)
    if (status !== 201) throw new Error(`the entities were not created: ${status} ${text.slice(0, 200)}`)
  }
}

/** Observations by MQTT and reads by HTTP, until the returned function is called. */
async function startTraffic({ http, gateway }: Site): Promise<() => Promise<void>> {
  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
  let value = 0
  const publishing = setInterval(() => {
    const pack = [{ bn: 'device1:', n: 't', v: value++ }]
    client.publish('senml/device1', JSON.stringify(pack), { qos: 1 })
  }, 5)
  const reading = setInterval(() => {
    http.get('/ngsi-ld/v1/entities?type=Plain&limit=10').catch(() => {})
  }, 20)
  return async () => {
    clearInterval(publishing)
    clearInterval(reading)
    await client.endAsync()
  }
}
