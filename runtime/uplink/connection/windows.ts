/**
 * The windows of an uplink: from each minute that a cron expression names the way may be used for so many minutes. Where
 * there are none it always may. A wall clock that jumps is looked at anew.
 */
import { openSchedule } from '#base/time/schedule.ts'
import type { UplinkWindow } from '#ngsi-ld/subscription/uplink-options.ts'

export interface Windows {
  /** Whether the way may be used at a time (ms). */
  isOpen(now: number): boolean
}

const minuteMs = 60_000

export async function openWindows(windows: readonly UplinkWindow[]): Promise<Windows> {
  if (windows.length === 0) return { isOpen: () => true }
  const all = await Promise.all(windows.map(createWindow))
  return Object.freeze({ isOpen: (now: number) => all.map((isOpen) => isOpen(now)).includes(true) })
}

async function createWindow({ cron, minutes }: UplinkWindow): Promise<Windows['isOpen']> {
  const { isTime } = await openSchedule(cron)
  /** The last minute that was looked at, and the end of the window that began last. */
  let lastMinute = Number.NaN
  let end = Number.NEGATIVE_INFINITY
  return (now) => {
    const minute = Math.floor(now / minuteMs)
    const isContinuous = minute >= lastMinute && minute - lastMinute <= minutes
    if (!isContinuous) end = Number.NEGATIVE_INFINITY
    for (let each = isContinuous ? lastMinute + 1 : minute - minutes + 1; each <= minute; each++)
      if (isTime(each * minuteMs)) end = each + minutes
    lastMinute = minute
    return minute < end
  }
}
