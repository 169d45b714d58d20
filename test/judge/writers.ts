/**
 * The devices and clients of a site in a trial. Each writer has entities of its own and repeats each action
 * until it is confirmed, so the gateway's data follows from the seed alone. Device time runs ahead of wall
 * time; an observation is never made twice with different values.
 */
import { connectAsync, type MqttClient } from 'mqtt'
import { type HttpClient, httpClient, type Reply } from '#test/kit/http-gateway.ts'

export const tankType = 'Tank'
export const vatType = 'Vat'
export const startMs = Date.UTC(2026, 0, 1)

/** The current address of the gateway; resolves when it is available. */
export type Place = () => Promise<{ readonly httpUrl: string; readonly mqttPort: number }>

export interface WriterPorts {
  readonly place: Place
  readonly dice: () => number
  /** Random numbers of its own, so that earlier seeds keep their schedule. */
  readonly otherDice: () => number
  /** Whether to continue; also limits the rate of observations. */
  readonly goesOn: (observations: number) => Promise<boolean>
  /** Ends all repeated requests: it throws when the trial is over. */
  readonly signal: AbortSignal
}

/** Counts of acknowledged actions, for statistics. */
export interface Tally {
  observations: number
  readonly operations: Record<string, number>
}

const attributes = ['level', 'temperature', 'flow', 'pressure', 'mode'] as const
const units = ['MTR', 'CMT', 'FOT'] as const
const api = '/ngsi-ld/v1'

interface Tank {
  readonly id: string
  exists: boolean
  /** Device time, steps of a second. */
  step: number
  readonly units: Record<string, string>
  readonly lates: Set<string>
}

const at = (step: number): string => new Date(startMs + step * 1000).toISOString()

/** A client that maintains some tanks by HTTP until it must stop. */
export async function keepTanks(
  name: string,
  count: number,
  ports: WriterPorts,
  tally: Tally,
): Promise<void> {
  const { dice, otherDice, goesOn } = ports
  const pick = <T>(all: readonly T[]): T => all[Math.floor(dice() * all.length)]!
  const tanks: Tank[] = Array.from({ length: count }, (_, i) => ({
    id: `urn:tank:${name}-${i}`,
    exists: false,
    step: 0,
    units: {},
    lates: new Set(),
  }))
  let next = 0
  let corrections = 0

  const did = (what: string, observations = 0): void => {
    tally.operations[what] = (tally.operations[what] ?? 0) + 1
    tally.observations += observations
  }
  const send = (method: string, path: string, body?: unknown, fine: readonly number[] = []): Promise<Reply> =>
    untilDone(ports, (client) => client.send(method, path, body), fine)

  const value = (attribute: string, step: number): unknown => {
    if (attribute === 'mode') return ['on', 'off', true, { state: 'idle', since: step }, [step, 1]][step % 5]
    return Math.round(1000 * Math.sin(step / 50) + attribute.length * 10) / 10
  }
  const observation = (tank: Tank, attribute: string, step: number, dataset?: string): object => ({
    type: 'Property',
    value: value(attribute, step),
    observedAt: at(step),
    ...(tank.units[attribute] === undefined ? {} : { unitCode: tank.units[attribute] }),
    ...(dataset === undefined ? {} : { datasetId: dataset }),
  })
  const observed = (tank: Tank): { body: Record<string, unknown>; count: number } => {
    const step = ++tank.step
    const chosen = attributes.filter(() => dice() < 0.9)
    const body: Record<string, unknown> = { id: tank.id, type: tankType }
    let made = chosen.length
    for (const attribute of chosen) body[attribute] = observation(tank, attribute, step)
    if (chosen.includes('flow') && dice() < 0.3) {
      body['flow'] = [body['flow'], observation(tank, 'flow', step, 'urn:second')]
      made++
    }
    return { body, count: made }
  }

  /** Rounds of observations of all existing tanks, several steps at once; this also creates tanks. */
  async function observe(): Promise<number> {
    const rounds = tanks.filter(({ exists }) => exists).map(observed)
    if (rounds.length === 0) return 0
    const bodies = rounds.map(({ body }) => body)
    const total = rounds.reduce((sum, { count: made }) => sum + made, 0)
    await send('POST', `${api}/entityOperations/upsert?options=update`, bodies)
    if (dice() < 0.05) await send('POST', `${api}/entityOperations/upsert?options=update`, bodies)
    did('observe', total)
    return total
  }

  async function late(tank: Tank): Promise<number> {
    const step = Math.max(1, tank.step - 1 - Math.floor(dice() * 40))
    // Between two seconds, so that its time is unique.
    const time = new Date(startMs + step * 1000 + 500).toISOString()
    const attribute = pick(['level', 'flow'])
    // It replaces the value of the same time, which is a correction and is not sent.
    if (tank.lates.has(`${attribute} ${step}`)) return 0
    tank.lates.add(`${attribute} ${step}`)
    const instance = { ...observation(tank, attribute, step), observedAt: time }
    await send('POST', `${api}/temporal/entities/${tank.id}/attrs`, { [attribute]: [instance] })
    did('late', 1)
    return 1
  }

  async function change(tank: Tank): Promise<number> {
    const kind = dice()
    const path = `${api}/entities/${tank.id}`
    if (kind < 0.2) {
      const attribute = pick(['level', 'temperature'])
      tank.units[attribute] = pick(units)
      const step = ++tank.step
      await send('PATCH', `${path}/attrs`, { [attribute]: observation(tank, attribute, step) }, [207])
      did('unit', 1)
      return 1
    }
    if (kind < 0.45) {
      await send('POST', `${path}/attrs`, { label: { type: 'Property', value: `label ${next++}` } }, [207])
      did('label')
      return 0
    }
    if (kind < 0.7) {
      const attribute = pick([...attributes, 'label'])
      await send('DELETE', `${path}/attrs/${attribute}?deleteAll=true`, undefined, [404])
      did('drop')
      return 0
    }
    if (kind < 0.85) {
      await send('DELETE', path, undefined, [404])
      tank.exists = false
      did('delete')
      return 0
    }
    const step = ++tank.step
    const body = {
      id: tank.id,
      type: tankType,
      level: observation(tank, 'level', step),
      label: { type: 'Property', value: `replaced ${next++}` },
    }
    await send('PUT', path, body)
    did('replace', 1)
    return 1
  }

  /**
   * Replaces types and scopes, corrects a value by an older one, or re-creates an entity with another
   * attribute.
   */
  async function restate(tank: Tank): Promise<number> {
    const kind = otherDice()
    const path = `${api}/entities/${tank.id}`
    const any = <T>(all: readonly T[]): T => all[Math.floor(otherDice() * all.length)]!
    if (kind < 0.25) {
      // Its time is unique.
      const correction = { ...observation(tank, 'pressure', tank.step), observedAt: correctedAt(tank) }
      await send('POST', `${path}/attrs`, { pressure: correction }, [207])
      did('correct', 1)
      return 1
    }
    if (kind < 0.5) {
      const scope = any(['/site/1', ['/site/1', '/hall/2'], undefined])
      if (scope === undefined) await send('DELETE', `${path}/attrs/scope`, undefined, [404])
      else await send('POST', `${path}/attrs`, { scope }, [207])
      did('scope')
      return 0
    }
    const type = any([tankType, vatType, [tankType, vatType]])
    const scope = any(['/site/3', undefined])
    const step = ++tank.step
    const attribute = any(attributes)
    const body = {
      id: tank.id,
      type,
      [attribute]: observation(tank, attribute, step),
      ...(scope && { scope }),
    }
    if (kind < 0.75) {
      await send('PUT', path, body)
      did('retype', 1)
      return 1
    }
    await send('DELETE', path, undefined, [404])
    await send('POST', `${api}/entities`, body, [409])
    did('recreate', 1)
    return 1
  }

  /** Before the last second, and between two of them. */
  const correctedAt = ({ step }: Tank): string => {
    const ms = 250 + (corrections++ % 200)
    return new Date(startMs + Math.max(1, step - 1 - Math.floor(otherDice() * 20)) * 1000 + ms).toISOString()
  }

  async function create(tank: Tank): Promise<number> {
    const { body, count: made } = observed(tank)
    await send('POST', `${api}/entities`, { ...body, label: { type: 'Property', value: 'new' } }, [409])
    tank.exists = true
    did('create', made)
    return made
  }

  let made = 0
  while (await goesOn(made)) {
    made = 0
    const gone = tanks.filter(({ exists }) => !exists)
    if (gone.length > 0 && dice() < 0.3) made += await create(pick(gone))
    const there = tanks.filter(({ exists }) => exists)
    if (there.length > 0 && dice() < 0.08) made += await late(pick(there))
    if (there.length > 0 && dice() < 0.12) made += await change(pick(there))
    const left = tanks.filter(({ exists }) => exists)
    if (left.length > 0 && otherDice() < 0.06)
      made += await restate(left[Math.floor(otherDice() * left.length)]!)
    made += await observe()
  }
}

/** A device that publishes batches of readings by MQTT until it must stop; some arrive late, some twice. */
export async function keepDevice(name: string, ports: WriterPorts, tally: Tally): Promise<void> {
  const { dice, goesOn } = ports
  const fields = ['temp', 'hum', 'co2']
  const line = createLine(name, ports)
  let step = 0
  let heldBack: string | undefined
  let made = 0
  while (await goesOn(made)) {
    const rows: object[] = []
    for (let i = 0; i < 10; i++) {
      step++
      for (const n of fields)
        rows.push({ n, v: Math.round(200 * Math.cos(step / 30)) / 10, t: startMs / 1000 + step })
    }
    made = rows.length
    const payload = JSON.stringify([{ bn: `${name}:`, ...rows[0] }, ...rows.slice(1)])
    if (heldBack === undefined && dice() < 0.1) {
      heldBack = payload
      continue
    }
    await line.publish(payload)
    if (dice() < 0.05) await line.publish(payload)
    tally.observations += made
    if (heldBack !== undefined && dice() < 0.3) {
      await line.publish(heldBack)
      heldBack = undefined
      tally.observations += made
    }
  }
  if (heldBack !== undefined) await line.publish(heldBack)
  line.end()
}

/**
 * A device without a clock, so its values have the time of reception; it counts, and sends each number once.
 */
export async function keepClockless(name: string, ports: WriterPorts, tally: Tally): Promise<void> {
  const line = createLine(name, ports)
  for (let v = 1; await ports.goesOn(1); v++) {
    await line.publish(JSON.stringify([{ bn: `${name}:`, n: 'count', v }]))
    tally.observations++
    await pause(50)
  }
  line.end()
}

/** The connection of a device, which publishes until acknowledged. */
function createLine(name: string, { place, signal }: Pick<WriterPorts, 'place' | 'signal'>) {
  let client: MqttClient | undefined
  return {
    async publish(payload: string): Promise<void> {
      for (;;) {
        signal.throwIfAborted()
        try {
          client ??= await connectAsync(`mqtt://127.0.0.1:${(await place()).mqttPort}`, {
            clientId: `judge-${name}`,
            clean: true,
            reconnectPeriod: 0,
            connectTimeout: 3000,
          })
          await bounded(client.publishAsync(`senml/${name}`, payload, { qos: 1 }), 5000)
          return
        } catch {
          client?.on('error', () => undefined).end(true)
          client = undefined
          await pause(50)
        }
      }
    },
    end: (): void => void client?.end(true),
  }
}

/** Repeats a request until the response confirms it. */
export async function untilDone(
  { place, signal }: Pick<WriterPorts, 'place' | 'signal'>,
  ask: (client: HttpClient) => Promise<Reply>,
  fine: readonly number[],
): Promise<Reply> {
  for (;;) {
    signal.throwIfAborted()
    const reply = await bounded(ask(httpClient((await place()).httpUrl)), 10_000).catch(() => undefined)
    if (reply !== undefined && (reply.status < 300 || fine.includes(reply.status)) && reply.status !== 207)
      return reply
    if (reply !== undefined && fine.includes(reply.status)) return reply
    if (reply !== undefined && reply.status < 500 && reply.status !== 429 && !isOfNoRoom(reply))
      throw new TypeError(`the gateway answered ${reply.status}: ${reply.text}`)
    await pause(50)
  }
}

/** The disk became full while a batch was written. */
function isOfNoRoom(reply: Reply): boolean {
  if (reply.status !== 207) return false
  const { errors } = reply.json() as { errors: readonly { error: { status?: number } }[] }
  return errors.every(({ error }) => (error.status ?? 0) >= 500)
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export function bounded<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TypeError(`nothing within ${ms} ms`)), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
