/**
 * Every bridge accepts any input: for any bytes on any topic, with any valid settings, it returns in bounded
 * time with bounded, finite, well-named readings. Repeated calls return the same readings, and it never
 * throws.
 */
import { readFileSync } from 'node:fs'
import { encode } from 'cborg'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { bridges } from '#bridges/registry.ts'
import type { Bridge, Decoded, Frame } from '#contract'
import { objectionTo } from '#contract/decoding.ts'
import { judgeReading } from '#intake/time-rules.ts'
import { workTime } from '#test/kit/calm-time.ts'
import { runs } from '#test/kit/runs.ts'

interface Example {
  readonly settings?: unknown
  readonly frame: { readonly topic: string; readonly text?: string; readonly hex?: string }
}

const examplesOf = (bridge: string): readonly Example[] =>
  JSON.parse(
    readFileSync(new URL(`../../firmware-bridges/${bridge}/examples.json`, import.meta.url), 'utf8'),
  ) as readonly Example[]

const payloadOf = ({ frame: { text, hex } }: Example): Buffer =>
  hex === undefined ? Buffer.from(text ?? '') : Buffer.from(hex, 'hex')

const frameOf = (topic: string, payload: Uint8Array, contentType?: string): Frame => ({
  topic,
  payload,
  contentType,
  receivedAt: 1_700_000_000_000,
  retained: false,
  transport: 'mqtt',
})

/** Limit in milliseconds for one frame of any bytes: fifty times the time of the slowest of these tests. */
const patience = 3000

function expectSound(bridge: Bridge<unknown>, settings: unknown, frame: Frame): Decoded {
  const worked = workTime()
  const decoded = bridge.decode(frame, settings)
  expect(worked()).toBeLessThan(patience)
  expect(decoded.readings.length).toBeLessThanOrEqual(limits.readingsPerFrameMax.value)
  expect(decoded.problems.length).toBeLessThanOrEqual(limits.problemsPerFrameMax.value + 1)
  for (const reading of decoded.readings) {
    expect(objectionTo(reading)).toBeUndefined()
    if (typeof reading.value === 'number') expect(Number.isFinite(reading.value)).toBe(true)
    if (reading.observedAt !== undefined) expect(Number.isSafeInteger(reading.observedAt)).toBe(true)
    expect(judgeReading(reading, frame)).toBeDefined()
  }
  for (const { reason, field = '' } of decoded.problems) {
    expect(reason).not.toBe('')
    expect(reason.length + field.length).toBeLessThan(2000)
  }
  expect(bridge.decode(frame, settings)).toEqual(decoded)
  return decoded
}

/** Removes, inserts or changes bytes at any position. */
const mutations = fc.array(
  fc.record({ at: fc.nat(4096), cut: fc.nat(8), put: fc.uint8Array({ maxLength: 8 }) }),
  { minLength: 1, maxLength: 6 },
)
type Mutation = { at: number; cut: number; put: Uint8Array }

function mutated(payload: Uint8Array, steps: readonly Mutation[]): Uint8Array {
  return steps.reduce<Uint8Array>((bytes, { at, cut, put }) => {
    const place = bytes.length === 0 ? 0 : at % bytes.length
    return Buffer.concat([bytes.subarray(0, place), put, bytes.subarray(place + cut)])
  }, payload)
}

describe.each(bridges)('the bridge $name', (bridge) => {
  const examples = examplesOf(bridge.name)
  const prepared = examples.map((example) => ({
    payload: payloadOf(example),
    topic: example.frame.topic,
    settings: bridge.check?.(example.settings ?? []).settings,
  }))
  const anyExample = fc.constantFrom(...prepared)
  const contentType = fc.constantFrom(
    undefined,
    'application/json',
    'application/cbor',
    ...bridge.contentTypes,
  )

  it('survives random bytes', () => {
    const property = fc.property(
      anyExample,
      fc.uint8Array({ maxLength: 512 }),
      contentType,
      ({ topic, settings }, bytes, type) => {
        expectSound(bridge, settings, frameOf(topic, bytes, type))
      },
    )
    fc.assert(property, { numRuns: runs(1000) })
  })

  it('survives damaged examples', () => {
    const property = fc.property(anyExample, mutations, ({ topic, settings, payload }, steps) => {
      expectSound(bridge, settings, frameOf(topic, mutated(payload, steps)))
    })
    fc.assert(property, { numRuns: runs(1000) })
  })

  it('survives any JSON, as text and as CBOR, on any topic', () => {
    const strange = fc.constantFrom('__proto__', 'constructor', 'n', 'bn', 'v', 'bt', 't', 'x_', '\ud800', '')
    const key = fc.oneof(fc.string({ maxLength: 4 }), strange)
    const leaf = fc.oneof(
      fc.double(),
      fc.string({ unit: 'binary' }),
      fc.boolean(),
      fc.constant(null),
      strange,
    )
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie('tree'), { maxLength: 5 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 6 }),
      ),
    }))
    const proposed = fc.property(fc.string({ maxLength: 40 }), tree, (where, value) => {
      const frame = frameOf(where, Buffer.from(JSON.stringify(value) ?? ''))
      const proposal = bridge.propose?.(frame)
      if (proposal?.source !== undefined)
        expect(bridge.check?.([{ ...proposal.source, topic: proposal.topic }]).problems).toEqual([])
    })
    fc.assert(proposed, { numRuns: runs(300) })
    const topic = fc.oneof(
      anyExample.map((one) => one.topic),
      fc.string({ maxLength: 40 }),
    )
    const property = fc.property(anyExample, topic, tree, ({ settings }, where, value) => {
      expectSound(bridge, settings, frameOf(where, Buffer.from(JSON.stringify(value) ?? '')))
      expectSound(bridge, settings, frameOf(where, encode(value)))
    })
    fc.assert(property, { numRuns: runs(500) })
  })

  it('checks any settings without throwing', () => {
    const raw = fc.oneof(fc.jsonValue(), fc.array(fc.record({ topic: fc.string(), fields: fc.jsonValue() })))
    const property = fc.property(raw, (settings) => {
      const checked = bridge.check?.(settings)
      if (checked?.settings !== undefined)
        expectSound(bridge, checked.settings, frameOf('a/b', Buffer.from('{"a":1}')))
    })
    fc.assert(property, { numRuns: runs(500) })
  })
})

describe('a frame of the maximum size', () => {
  const size = limits.frameBytesMax.value
  const fill = (part: string, wrap = (text: string): string => text): Buffer =>
    Buffer.from(wrap(part.repeat(Math.floor(size / part.length) - 2)))
  const list = (text: string): string => `[${text.slice(0, -1)}]`
  const hostile: Readonly<Record<string, Uint8Array>> = {
    'open brackets': fill('['),
    'open braces': fill('{"a":'),
    'many records': fill('{"n":"d:f","v":1},', list),
    'many wrong records': fill('{"n":"d:f","v":"x"},', list),
    'many numbers': fill('7,', list),
    'many members': fill('"a":1,', (text) => `{${text.slice(0, -1)}}`),
    'one long name': fill('a', (text) => `[{"n":"d:${text}","v":1}]`),
    'one long number': fill('9', (text) => `[{"n":"d:f","v":${text}}]`),
    'one long text': fill('f', (text) => `{"a":"${text}"}`),
    'lines of numbers': fill('21.5;40\n', (text) => text),
    'named values': fill('t=21.5;', (text) => text),
    'names without values': fill('a=', (text) => text),
    commas: fill(',', (text) => `1${text}`),
    spaces: fill(' ', (text) => `t${text}1`),
    'nested members': fill('{"a":', (text) => `${text}1${'}'.repeat(text.length / 5)}`),
    'local times': fill('2026-10-25 02:30:00;1\n', (text) => text),
    separators: fill(':', (text) => `[{"n":"d${text}","v":1}]`),
    'nested CBOR arrays': new Uint8Array(size).fill(0x81),
    'nested CBOR tags': new Uint8Array(size).fill(0xc4),
    'nested CBOR maps': new Uint8Array(size).fill(0xa1),
    'a CBOR bignum': Buffer.concat([
      Buffer.from('81a2006364 3a6602c25a0003ff00'.replace(' ', ''), 'hex'),
      new Uint8Array(0x3ff00).fill(0xff),
    ]),
  }
  it.each(Object.keys(hostile))('%s', (name) => {
    for (const bridge of bridges) {
      const examples = examplesOf(bridge.name)
      for (const { settings, frame } of [...examples.slice(0, 8), ...examples.slice(-12)])
        expectSound(bridge, bridge.check?.(settings ?? []).settings, frameOf(frame.topic, hostile[name]!))
    }
  })
})
