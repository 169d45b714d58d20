/**
 * Runs jobs of a plugin at the times of cron expressions. A running job is not started again. An error of a
 * job is logged, and it runs again at its next time.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { cronWords, isCron, openSchedule, type Schedule } from '#base/time/schedule.ts'

const minuteMs = 60_000

export function createTimetable(name: string, { clock, log }: { clock: Clock; log: Log }) {
  const timers: NodeJS.Timeout[] = []
  return Object.freeze({
    /** @throws GatewayError config.invalid for an invalid cron expression. */
    add(cron: string, job: () => void | Promise<void>): void {
      if (!isCron(cron)) throw new GatewayError('config.invalid', `"${cron}" is not ${cronWords}`)
      let schedule: Schedule | undefined
      let minute = Math.floor(clock.now() / minuteMs)
      let isBusy = false
      const look = async (): Promise<void> => {
        schedule ??= await openSchedule(cron)
        const now = Math.floor(clock.now() / minuteMs)
        if (isBusy || now === minute) return
        minute = now
        if (!schedule.isTime(now * minuteMs)) return
        isBusy = true
        try {
          await job()
        } catch (error) {
          log.error('plugin.failed', { plugin: name, during: cron, error })
        } finally {
          isBusy = false
        }
      }
      timers.push(setInterval(() => void look(), limits.pluginTimetableMs.value).unref())
    },
    close(): void {
      for (const timer of timers) clearInterval(timer)
    },
  })
}
