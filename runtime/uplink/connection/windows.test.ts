/**
 * Time windows of an uplink: when they are open, including a start within one and clock jumps.
 */
import { describe, expect, it } from 'vitest'
import { openWindows } from './windows.ts'

const at = (hour: number, minute = 0, day = 5): number => new Date(2026, 0, day, hour, minute, 30).getTime()
const night = [{ cron: '0 2 * * *', minutes: 90 }]

describe('windows of an uplink', () => {
  it('open at their minute for their duration, every day', async () => {
    const { isOpen } = await openWindows(night)
    const opened: string[] = []
    let wasOpen = false
    for (let minute = 0; minute < 2 * 1440; minute++) {
      const isNow = isOpen(at(0, minute))
      if (isNow !== wasOpen) opened.push(`${isNow} ${minute}`)
      wasOpen = isNow
    }
    expect(opened).toEqual(['true 120', 'false 210', 'true 1560', 'false 1650'])
  })

  it('are recognized when the gateway starts within one', async () => {
    expect((await openWindows(night)).isOpen(at(3, 29))).toBe(true)
    expect((await openWindows(night)).isOpen(at(3, 30))).toBe(false)
  })

  it('follow a clock that jumps', async () => {
    const { isOpen } = await openWindows(night)
    expect(isOpen(at(2, 10))).toBe(true)
    expect(isOpen(at(12, 0, 9))).toBe(false)
    expect(isOpen(at(2, 20))).toBe(true)
    expect(isOpen(at(1, 0))).toBe(false)
  })

  it('are optional', async () => {
    expect((await openWindows([])).isOpen(0)).toBe(true)
  })
})
