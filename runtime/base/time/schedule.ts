/**
 * Times that come again, written as cron expressions of five fields: minute, hour, day of the month, month, day of the
 * week (0 and 7 are Sunday), each a list of numbers, ranges and steps. Times are those of the time zone of the process.
 * The library is loaded only when something goes by such a time.
 */

const bounds: readonly (readonly [least: number, most: number])[] = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
]

/** What a cron expression has to be, in words. */
export const cronWords = 'a cron expression of five fields such as 0 2 * * *'

/** Whether it is one that can be gone by. */
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
    // A step of one number alone is written in many ways and means nothing that is sure.
    if (step !== undefined && match[2] === undefined) return false
    return Number(from) >= least && Number(to) <= most && Number(from) <= Number(to)
  })
}

/** Something that comes again. */
export interface Schedule {
  /** Whether the minute of a time (ms) is one of its times. */
  isTime(ms: number): boolean
}

/** Reads an expression that `isCron` takes. */
export async function openSchedule(expression: string): Promise<Schedule> {
  const { createTask } = await import('node-cron')
  const task = createTask(expression, () => undefined)
  // It is only asked; the library need not keep it among those that run.
  await task.destroy()
  return Object.freeze({
    isTime: (ms: number) => task.match(new Date(Math.floor(ms / 60_000) * 60_000)),
  })
}
