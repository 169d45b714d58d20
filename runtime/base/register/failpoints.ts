/**
 * Named failpoints: places where a test may kill the process, make it fail, or slow it down. They do nothing
 * unless SELVEDGE_FAILPOINTS arms them, as `name=action` pairs separated by commas:
 *
 *   kill        SIGKILL at the first pass;  kill(n)  at the n-th
 *   sleep(ms)   block this thread at every pass (emulates slow flash)
 *   throw       raise store.failed at every pass;  throw(n)  at the n-th only
 *
 * SELVEDGE_CLOCK_SHIFT names a file that contains an error to be added to the system clock, in milliseconds.
 */
import { readFileSync } from 'node:fs'
import { GatewayError } from './errors.ts'

export const failpointNames = [
  'door:before-send',
  'writer:before-commit',
  'writer:after-commit',
  'writer:after-checkpoint',
  'writer:mid-fold',
  'door:before-publish',
  'door:before-answer',
  'door:mid-answer',
  'writeback:after-write',
  'delivery:after-send',
  'delivery:before-settle',
  'mqtt:after-puback',
  'migrate:between-steps',
  'start:mid-replay',
  'backup:mid-copy',
  'backup:between-files',
  'backup:before-name',
  'restore:between-files',
  'restore:before-end',
  'mend:between-names',
  'reserve:released',
  'quality:stored',
  'http:internal',
] as const

export type Failpoint = (typeof failpointNames)[number]

interface Armed {
  action: 'kill' | 'sleep' | 'throw'
  argument: number
  passages: number
}

const armed = parseArmed(process.env['SELVEDGE_FAILPOINTS'])

/** Marks a failpoint; costs one comparison unless a failpoint is armed. */
export function failpoint(name: Failpoint): void {
  if (armed !== undefined) pass(name, armed)
}

function pass(name: Failpoint, table: Map<string, Armed>): void {
  const point = table.get(name)
  if (point === undefined) return
  point.passages++
  if (point.action === 'sleep') {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, point.argument)
    return
  }
  const due =
    point.argument === 0
      ? point.action === 'throw' || point.passages === 1
      : point.passages === point.argument
  if (!due) return
  if (point.action === 'kill') {
    process.kill(process.pid, 'SIGKILL')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }
  throw new GatewayError('store.failed', `failpoint ${name}`)
}

function parseArmed(text: string | undefined): Map<string, Armed> | undefined {
  if (text === undefined || text === '') return undefined
  const table = new Map<string, Armed>()
  for (const part of text.split(',')) {
    const match = /^([a-z:-]+)=(kill|sleep|throw)(?:\((\d+)\))?$/.exec(part.trim())
    if (match === null || !(failpointNames as readonly string[]).includes(match[1]!)) {
      throw new GatewayError(
        'config.invalid',
        `SELVEDGE_FAILPOINTS expects name=kill|sleep(ms)|throw, got "${part}"`,
      )
    }
    table.set(match[1]!, {
      action: match[2] as Armed['action'],
      argument: Number(match[3] ?? 0),
      passages: 0,
    })
  }
  return table
}

const shiftFile = process.env['SELVEDGE_CLOCK_SHIFT']
const shiftEveryMs = 100
let shift = 0
let shiftReadAt = Number.NEGATIVE_INFINITY

/** The error that a test adds to the system clock, ms. */
export function clockShiftMs(): number {
  if (shiftFile === undefined || performance.now() - shiftReadAt < shiftEveryMs) return shift
  shiftReadAt = performance.now()
  shift = Number(readFileSync(shiftFile, 'utf8')) || 0
  return shift
}
