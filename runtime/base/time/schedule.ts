/**
 * Schedules written as cron expressions of five fields: minute, hour, day of the month, month, day of the
 * week (0 and 7 are Sunday), each a list of numbers, ranges and steps. Times are in the time zone of the
 * process. The library is loaded only when a schedule is opened.
 */

const bounds: readonly (readonly [least: number, most: number])[] = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
]

/** Description of a cron expression for error messages. */
export const cronWords = 'a cron expression of five fields such as 0 2 * * *'

/** Whether the text is a cron expression that `openSchedule` accepts. */
export function isCron(text: string): boolean {
  const fields = text.trim().split(/\s+/)
  return fields.length === bounds.length && fields.every((field, i) => isField(field, ...bounds[i]!))
}

function isField(text: string, least: number, most: number): boolean {
  return text.split(',').every((part) => {
    const match = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/([1-9]\d?))?$/.exec(part)
    if (match === null) return false
    const [, from, to = from, step] = match
    if (from === undefined) return true
    // Implementations disagree about a step after a single number.
    if (step !== undefined && match[2] === undefined) return false
    return Number(from) >= least && Number(to) <= most && Number(from) <= Number(to)
  })
}

/** A recurring time. */
export interface Schedule {
  /** Whether the schedule contains the minute of a time (ms). */
  isTime(ms: number): boolean
}

/** Parses an expression that `isCron` accepts. */
export async function openSchedule(expression: string): Promise<Schedule> {
  const { createTask } = await import('node-cron')
  const task = createTask(expression, () => undefined)
  // The task is only matched with times, so it is removed from the scheduler of the library.
  await task.destroy()
  return Object.freeze({
    isTime: (ms: number) => task.match(new Date(Math.floor(ms / 60_000) * 60_000)),
  })
}
