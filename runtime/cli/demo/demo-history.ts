/**
 * Reads the stored history of the simulated site over the public HTTP interface of the gateway.
 */

import { sendRequest } from '#cli/gateway/gateway-client.ts'
import { sosa } from '#contract/vocabulary.ts'
import { siteId } from '#intake/site-ids.ts'
import type { DemoDevice } from './demo-devices.ts'
import { withUnit } from './demo-units.ts'

interface Stored {
  readonly value: number
  readonly at: number
}

/** A field of a device and a time range in ms, both ends included. */
interface FieldRange {
  readonly device: string
  readonly field: string
  readonly from: number
  readonly to: number
}

/** Stored values of a field; empty if there is no history. @throws cli.no-answer */
async function storedValues(httpUrl: string, { device, field, from, to }: FieldRange): Promise<Stored[]> {
  const id = encodeURIComponent(siteId('StreamObservation', device, field))
  const within = `timerel=between&timeAt=${isoTime(from)}&endTimeAt=${isoTime(to + 1)}`
  const { status, text } = await sendRequest(
    `${httpUrl}/ngsi-ld/v1/temporal/entities/${id}?options=temporalValues&${within}`,
  )
  if (status !== 200) return []
  const { [sosa.hasSimpleResult]: result } = JSON.parse(text) as Record<
    string,
    { readonly values?: readonly (readonly [number, string])[] } | undefined
  >
  return (result?.values ?? []).map(([value, time]) => ({ value, at: Date.parse(time) }))
}

const isoTime = (time: number): string => new Date(time).toISOString()

/** The number of stored values of a device at the given times. */
export async function countStored(
  httpUrl: string,
  device: DemoDevice,
  times: readonly number[],
): Promise<number> {
  const wanted = new Set(times)
  let count = 0
  for (const { name } of device.fields) {
    const range = { device: device.id, field: name, from: Math.min(...times), to: Math.max(...times) }
    const stored = await storedValues(httpUrl, range)
    count += new Set(stored.map(({ at }) => at).filter((at) => wanted.has(at))).size
  }
  return count
}

const enoughValues = 50

/** A line for each field whose stored values in a range are all equal. */
export async function stuckSensors(
  httpUrl: string,
  devices: readonly DemoDevice[],
  { from, to }: Pick<FieldRange, 'from' | 'to'>,
): Promise<string[]> {
  const lines: string[] = []
  for (const { id, fields } of devices) {
    for (const { name, unitCode } of fields) {
      const values = (await storedValues(httpUrl, { device: id, field: name, from, to })).map(
        ({ value }) => value,
      )
      if (values.length < enoughValues || new Set(values).size > 1) continue
      lines.push(
        `STUCK SENSOR: ${id} ${name} is ${withUnit(values[0], unitCode)} in all ${values.length} values of the last 24 hours`,
      )
    }
  }
  return lines
}
