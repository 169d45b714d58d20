/** Duplicates within the window are recognized, the window does not slide, and memory is bounded. */
import { expect, it } from 'vitest'
import type { Frame } from '#contract'
import { createDigestWindow } from './digest-window.ts'

const frame = (text: string, topic = 't'): Frame => ({
  topic,
  payload: Buffer.from(text),
  receivedAt: 0,
  retained: false,
  transport: 'mqtt',
})

const resent = (text: string): Frame => ({ ...frame(text), isResent: true })

it('admits a payload once per window', () => {
  const window = createDigestWindow()
  expect(window.admit(frame('a'), 1000)).toBe(true)
  expect(window.admit(frame('a'), 1000)).toBe(false)
  expect(window.admit(frame('a'), 60_999)).toBe(false)
  expect(window.admit(frame('a'), 61_000)).toBe(true)
  expect(window.admit(frame('a'), 61_001)).toBe(false)
})

it('distinguishes payloads and topics', () => {
  const window = createDigestWindow()
  expect(window.admit(frame('a'), 0)).toBe(true)
  expect(window.admit(frame('b'), 0)).toBe(true)
  expect(window.admit(frame('a', 'u'), 0)).toBe(true)
  expect(window.admit(frame('', 'ta'), 0)).toBe(true)
})

it('admits a repeated payload when another arrived since, unless the sender marks it as re-sent', () => {
  const window = createDigestWindow()
  expect(window.admit(frame('open'), 0)).toBe(true)
  expect(window.admit(frame('shut'), 1)).toBe(true)
  expect(window.admit(resent('open'), 2)).toBe(false)
  expect(window.admit(resent('shut'), 3)).toBe(false)
  expect(window.admit(frame('open'), 4)).toBe(true)
  expect(window.admit(frame('open'), 5)).toBe(false)
  expect(window.admit(frame('shut', 'u'), 6)).toBe(true)
  expect(window.admit(frame('open'), 7)).toBe(false)
  expect(window.admit(resent('ajar'), 8)).toBe(true)
})

it('forgets a frame whose commit failed', () => {
  const window = createDigestWindow()
  window.admit(frame('a'), 0)
  window.forget(frame('a'))
  expect(window.admit(frame('a'), 1)).toBe(true)
})

it('is bounded by number and drops the oldest', () => {
  const window = createDigestWindow({ digestsMax: 100 })
  for (let number = 0; number < 1000; number++) {
    window.admit(frame(`${number}`), number)
    expect(window.size).toBeLessThanOrEqual(100)
  }
  expect(window.admit(resent('999'), 1000)).toBe(false)
  expect(window.admit(resent('950'), 1000)).toBe(false)
  expect(window.admit(resent('899'), 1000)).toBe(true)
})

it('remembers for a whole window, however frames are distributed over generations', () => {
  const window = createDigestWindow({ windowMs: 1000 })
  for (let now = 0; now < 5000; now += 7) {
    expect(window.admit(frame(`${now}`), now)).toBe(true)
    if (now >= 994) expect(window.admit(resent(`${now - 994}`), now)).toBe(false)
  }
  expect(window.size).toBeLessThan(300)
})

it('is emptied by time', () => {
  const window = createDigestWindow({ windowMs: 1000 })
  for (let number = 0; number < 90; number++) window.admit(frame(`${number}`), 0)
  window.admit(frame('later'), 1000)
  window.admit(frame('last'), 2000)
  expect(window.size).toBe(2)
})
