/**
 * Accepted cron expressions; a schedule matches minutes of local time.
 */
import { describe, expect, it } from 'vitest'
import { isCron, openSchedule } from './schedule.ts'

describe('a schedule', () => {
  it.each(['* * * * *', '0 2 * * *', '*/15 8-18 * * 1-5', '0,30 0 1,15 1-6/2 7'])('accepts %s', (text) => {
    expect(isCron(text)).toBe(true)
  })

  it.each([
    '',
    '0 2 * *',
    '0 0 2 * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '5-1 * * * *',
    '*/0 * * * *',
    'x * * * *',
  ])('rejects %j', (text) => {
    expect(isCron(text)).toBe(false)
  })

  it('matches the minutes of its times', async () => {
    const { isTime } = await openSchedule('30 2 * * *')
    expect(isTime(new Date(2026, 0, 5, 2, 30, 59).getTime())).toBe(true)
    expect(isTime(new Date(2026, 0, 5, 2, 31).getTime())).toBe(false)
    expect(isTime(new Date(2026, 0, 5, 3, 30).getTime())).toBe(false)
  })
})
