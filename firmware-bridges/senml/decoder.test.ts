/**
 * Behaviour that the golden examples cannot show: claims, limits, detection of the representation, hostile
 * bytes.
 */
import { encode } from 'cborg'
import { expect, it } from 'vitest'
import type { Decoded, Frame } from '#contract'
import { senml } from './decoder.ts'

const frameOf = (payload: Uint8Array | string, more: Partial<Frame> = {}): Frame => ({
  topic: 'senml/t',
  payload: typeof payload === 'string' ? Buffer.from(payload) : payload,
  receivedAt: 1_700_000_000_000,
  retained: false,
  transport: 'mqtt',
  ...more,
})
const decode = (payload: Uint8Array | string, more: Partial<Frame> = {}): Decoded =>
  senml.decode(frameOf(payload, more), undefined)
const reasonOf = ({ problems }: Decoded): string => problems.map(({ reason }) => reason).join()

const pack = (records: number): string =>
  JSON.stringify(Array.from({ length: records }, (_, index) => ({ bn: 'd:', n: `f${index}`, v: index })))

it('claims senml/# and its media types', () => {
  expect(senml.topics).toEqual(['senml/#'])
  expect(senml.contentTypes).toEqual(['application/senml+json', 'application/senml+cbor'])
})

it('returns all readings of a frame or none', () => {
  expect(decode(pack(1024)).readings).toHaveLength(1024)
  expect(decode(pack(1025))).toEqual({
    readings: [],
    problems: [{ reason: 'more than 1024 readings in one frame' }],
  })
})

it('reports the first problems and counts the others', () => {
  const records = Array.from({ length: 100 }, () => ({ bn: 'd:', n: 'x', v: 'text' }))
  const { problems } = decode(JSON.stringify(records))
  expect(problems).toHaveLength(17)
  expect(problems[16]).toEqual({ reason: '84 more problems' })
})

it('trusts the media type more than the first byte', () => {
  const bytes = encode([{ n: 'd:f', v: 1 }])
  expect(decode(bytes).readings).toHaveLength(1)
  expect(reasonOf(decode(bytes, { contentType: 'application/senml+json' }))).toBe('the payload is not UTF-8')
  expect(decode(bytes, { contentType: 'Application/SenML+CBOR; x=y' }).readings).toHaveLength(1)
  expect(decode(bytes, { contentType: 'application/octet-stream' }).readings).toHaveLength(1)
  expect(reasonOf(decode('[]', { contentType: 'application/senml+cbor' }))).toMatch(
    /^the payload is not CBOR/,
  )
})

it('rejects names that cannot become ids', () => {
  expect(reasonOf(decode(JSON.stringify([{ bn: `${'d'.repeat(257)}:`, n: 'f', v: 1 }])))).toMatch(
    /longer than 256/,
  )
})

it('reads a payload that is a view into a larger buffer', () => {
  const bytes = Buffer.from(`xx${pack(1)}yy`)
  expect(decode(new Uint8Array(bytes.buffer, bytes.byteOffset + 2, bytes.length - 4)).readings).toHaveLength(
    1,
  )
})

it('survives deep nesting and wrong lengths', () => {
  expect(decode('['.repeat(100_000)).readings).toEqual([])
  expect(decode(new Uint8Array(100_000).fill(0x81)).readings).toEqual([])
  expect(decode(new Uint8Array(100_000).fill(0xc4)).readings).toEqual([])
  for (const hex of [
    '9bffffffffffffffff',
    '9affffffff00',
    '81bbffffffffffffffff',
    '817b00ffffffffffff',
    '81',
  ])
    expect(decode(Buffer.from(hex, 'hex')).problems).toHaveLength(1)
})
