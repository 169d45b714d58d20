/** Whether a broker can notify this gateway, from its reported failures and the callback address. */
import { describe, expect, it } from 'vitest'
import { isHiddenFrom, silenceOf, undeliveredAt } from './silence.ts'

const plugin = 'indexing'
const [early, late] = ['2026-01-01T00:00:00Z', '2026-01-01T00:10:00Z']
const open = { plugin, base: 'http://gateway/indexing', isHidden: false }

describe('a broker that cannot notify', () => {
  it('is not reported without a failure', () => {
    expect(silenceOf({}, open)).toBeUndefined()
    expect(silenceOf({ undelivered: {}, madeGood: { stream: early } }, open)).toBeUndefined()
  })

  it('makes entries stale from a failure until the next full read', () => {
    const reason = 'it cannot notify this gateway at http://gateway/indexing; set indexing.callbackUrl'
    expect(silenceOf({ undelivered: { stream: early } }, open)).toEqual({ reason, isAged: true })
    const undelivered = { stream: late, sensor: early }
    expect(silenceOf({ undelivered, madeGood: { stream: early, sensor: early } }, open)?.isAged).toBe(true)
    expect(silenceOf({ undelivered, madeGood: undelivered }, open)).toEqual({ reason, isAged: false })
    expect(undeliveredAt({ undelivered })).toBe(late)
  })

  it('is detected without a failure if only this machine can reach the callback address', () => {
    expect(silenceOf({}, { ...open, isHidden: true })?.isAged).toBe(true)
  })

  it.each([
    ['http://broker:9090', 'http://127.0.0.1:9090/indexing', true],
    ['https://10.0.0.7', 'http://localhost:9090/indexing', true],
    ['http://broker:9090', 'http://gateway:9090/indexing', false],
    ['http://localhost:9191', 'http://127.0.0.1:9090/indexing', false],
    ['http://127.0.0.1:9191', 'https://gateway.example/indexing', false],
  ])('at %s, of %s', (broker, address, isHidden) => {
    expect(isHiddenFrom(broker, address)).toBe(isHidden)
  })
})
