/**
 * The meters that the benchmark of history measures on: one value a second, in parts as a client would bring the past
 * of a device. Values follow from their place in time, so loads in other processes ask for what is there.
 */

export const meters = 12
export const daySeconds = 86_400
const startMs = Date.UTC(2026, 0, 1)
const partOf = 1000
const inFlight = 4
const temporal = '/ngsi-ld/v1/temporal/entities'

export const meterId = (i: number): string => `urn:ngsi-ld:Meter:meter-${String(i).padStart(3, '0')}`

/** Power drawn in watts at a second: a daily curve with noise, two decimals. */
function powerAt(meter: number, second: number): number {
  const curve = 400 - 300 * Math.cos((2 * Math.PI * second) / daySeconds)
  return Math.round((curve + 30 * Math.sin(second * 12.9898 + meter * 78.233)) * 100) / 100
}

/** Path of request number `n`: one day of a meter by the hour, which begins later each time where it `moves`. */
export function hoursOf(n: number, count: number, moves = false): string {
  const from = startMs + (moves ? (n % 3600) * 1000 : 0)
  const end = new Date(from + daySeconds * 1000).toISOString()
  const window = `timerel=between&timeAt=${new Date(from).toISOString()}&endTimeAt=${end}`
  const aggregates = 'options=aggregatedValues&aggrMethods=avg,min,max&aggrPeriodDuration=PT1H'
  return `${temporal}/${meterId((n * 7) % count)}?attrs=power&${window}&${aggregates}`
}

/** Creates meters with one value each, the one before their first day. */
export async function createMeters(httpPort: number): Promise<void> {
  for (let meter = 0; meter < meters; meter++) {
    await post(httpPort, temporal, { id: meterId(meter), type: 'Meter', power: powers(meter, -1, 0) })
  }
}

/** Writes the day of meters `first` to `end` - 1. Returns how many values were written per second. */
export async function fillMeters(httpPort: number, first: number, end: number): Promise<number> {
  const startedAt = performance.now()
  let next = daySeconds * first
  const worker = async (): Promise<void> => {
    while (next < daySeconds * end) {
      const [meter, from] = [Math.floor(next / daySeconds), next % daySeconds]
      const to = Math.min(daySeconds, from + partOf)
      next += to - from
      await post(httpPort, `${temporal}/${meterId(meter)}/attrs`, { power: powers(meter, from, to) })
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return (daySeconds * (end - first)) / ((performance.now() - startedAt) / 1000)
}

/** Gives one value of the first meter's day another one, and takes another away. */
export async function correctMeter(httpPort: number): Promise<void> {
  const path = `${temporal}/${meterId(0)}`
  for (const [second, method] of [
    [30_001, 'PATCH'],
    [60_001, 'DELETE'],
  ] as const) {
    const time = (ms: number): string => new Date(startMs + second * 1000 + ms).toISOString()
    const query = `attrs=power&timerel=between&timeAt=${time(0)}&endTimeAt=${time(1)}`
    const { power } = (await (await fetch(`http://127.0.0.1:${httpPort}${path}?${query}`)).json()) as {
      power: { instanceId: string }[]
    }
    const one = `${path}/attrs/power/${power[0]!.instanceId}`
    await send(
      httpPort,
      method,
      one,
      method === 'PATCH' ? { power: powers(1, second, second + 1) } : undefined,
    )
  }
}

const powers = (meter: number, from: number, to: number): object[] =>
  Array.from({ length: to - from }, (_, i) => ({
    type: 'Property',
    value: powerAt(meter, from + i),
    unitCode: 'WTT',
    observedAt: new Date(startMs + (from + i) * 1000).toISOString(),
  }))

const post = (httpPort: number, path: string, body: object): Promise<void> =>
  send(httpPort, 'POST', path, body)

async function send(httpPort: number, method: string, path: string, body?: object): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${httpPort}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new TypeError(`history was refused with ${answer.status}: ${await answer.text()}`)
  await answer.arrayBuffer()
}
