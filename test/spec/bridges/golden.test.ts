/**
 * The golden examples of every firmware bridge: a frame, optional settings, and the exact readings and
 * problems to produce. The examples are normative: decoders change to match them, not the reverse.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { bridges } from '#bridges/registry.ts'
import type { Frame, Json } from '#contract'

interface Example {
  readonly name: string
  /** Clause of the standard, if the example is from a standard. */
  readonly source: string
  readonly settings?: Json
  readonly frame: Partial<Frame> & {
    readonly topic: string
    readonly receivedAt: number
    readonly text?: string
    readonly hex?: string
  }
  readonly expected: Json
}

const examplesOf = (bridge: string): readonly Example[] =>
  JSON.parse(
    readFileSync(new URL(`../../../firmware-bridges/${bridge}/examples.json`, import.meta.url), 'utf8'),
  ) as readonly Example[]

function frameOf({ text, hex, ...rest }: Example['frame']): Frame {
  const payload = hex === undefined ? Buffer.from(text ?? '') : Buffer.from(hex, 'hex')
  return { retained: false, transport: 'mqtt', ...rest, payload }
}

describe.each(bridges)('the bridge $name', (bridge) => {
  const examples = examplesOf(bridge.name)

  it('has examples', () => expect(examples.length).toBeGreaterThan(0))

  it.each(examples)('$name', ({ frame, settings, expected }) => {
    const checked = bridge.check?.(settings ?? [])
    expect(checked?.problems ?? []).toEqual([])
    const decoded = bridge.decode(frameOf(frame), checked?.settings)
    expect(JSON.parse(JSON.stringify(decoded))).toEqual(expected)
  })
})

describe('the bridge json, for a topic that is not mapped,', () => {
  const json = bridges.find(({ name }) => name === 'json')!
  const deviceOf = (topic: string): unknown => {
    const proposal = json.propose!(frameOf({ topic, receivedAt: 0, text: '{"temperature":21,"humidity":3}' }))
    return (proposal!.source as { deviceName: string }).deviceName
  }

  it.each([
    ...['state', 'status', 'telemetry', 'sensor', 'sensors', 'data', 'value', 'values', 'json', 'up'],
    ...['measurement', 'measurements', 'reading', 'readings', 'attributes', 'UP'],
  ])('proposes the level before a last level %s as the device', (word) => {
    expect(deviceOf(`hall/d7/${word}`)).toBe('d7')
  })

  it('proposes any other last level as the device', () => expect(deviceOf('hall/d7/kitchen')).toBe('kitchen'))
})
