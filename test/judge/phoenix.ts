/**
 * A gateway in a trial: killed and restarted on the same ports, with a clock of its own that is set, jumps,
 * and is lost on a restart as on a board without battery. Concurrent requests kill it one at a time.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { bounded, pause } from './writers.ts'

export interface Phoenix {
  readonly now: () => Promise<GatewayProcess>
  /** Kills it, waits, and restarts it. */
  reborn(signal: NodeJS.Signals, meanwhile: () => Promise<unknown>): Promise<void>
  /** Kills it for good, in any state. */
  end(): Promise<unknown>
  /** How often it was killed so far, and whether it is about to start. */
  readonly lives: () => { readonly ended: number; readonly isBeginning: boolean }
  readonly clock: WrongClock
}

/** The clock of its machine as the gateway sees it. */
export interface WrongClock {
  /** Adds an error (ms) that nothing reports. */
  jump(byMs: number): void
  /** Same, and then the time service reports it. */
  set(byMs: number): Promise<void>
  /** Not set since boot. */
  forget(): void
}

const startsWithinMs = 60_000
const endsWithinMs = 30_000

/**
 * Its data folder is `name` in a folder; its clock is beside it if there is room. `more` extends its
 * environment.
 */
export async function createPhoenix(
  dataFolder: string,
  clockFolder: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Phoenix> {
  const [shiftFile, setFile] = [join(clockFolder, 'shift'), join(clockFolder, 'run/synchronized')]
  let shift = 0
  mkdirSync(join(clockFolder, 'run'), { recursive: true })
  const clock: WrongClock = {
    jump(byMs) {
      shift += Math.round(byMs)
      writeFileSync(shiftFile, String(shift))
    },
    async set(byMs) {
      clock.jump(byMs)
      // A gateway reads its clock error that often; the error was set before it was reported.
      await pause(250)
      writeFileSync(setFile, '')
    },
    forget: () => rmSync(setFile, { force: true }),
  }
  await clock.set(0)
  const clockEnv = { ...more, SELVEDGE_CLOCK_SHIFT: shiftFile, SELVEDGE_CLOCK_SYNCED_FILE: setFile }
  let gateway = await startGatewayProcess({ dataFolder, env: clockEnv, readyWithinMs: startsWithinMs })
  const env = {
    ...clockEnv,
    SELVEDGE_HTTP_PORT: String(gateway.httpPort),
    SELVEDGE_MQTT_PORT: String(gateway.mqttPort),
  }
  let waiting: PromiseWithResolvers<GatewayProcess> | undefined
  let last: Promise<void> = Promise.resolve()
  let ended = 0
  let isOver = false

  async function die(signal: NodeJS.Signals, meanwhile: () => Promise<unknown>): Promise<void> {
    waiting = Promise.withResolvers()
    ended++
    const startedAt = performance.now()
    await bounded(gateway.kill(signal), endsWithinMs).catch(() => gateway.kill())
    const tookMs = performance.now() - startedAt
    if (tookMs > 10_000) throw new TypeError(`${signal} took ${Math.round(tookMs)} ms`)
    await meanwhile()
    gateway = await started()
    waiting.resolve(gateway)
    waiting = undefined
  }

  /** On a full disk it does not start; its supervisor retries. */
  async function started(): Promise<GatewayProcess> {
    const until = performance.now() + startsWithinMs
    for (;;) {
      try {
        return await startGatewayProcess({ dataFolder, env, readyWithinMs: startsWithinMs })
      } catch (error) {
        if (isOver || performance.now() > until) throw error
        await pause(500)
      }
    }
  }

  return {
    now: () => waiting?.promise ?? Promise.resolve(gateway),
    reborn(signal, meanwhile) {
      last = last.then(() => die(signal, meanwhile))
      return last
    },
    async end() {
      isOver = true
      await gateway.kill('SIGKILL')
      // A starting gateway ends as soon as it has started.
      await last.then(() => gateway.kill('SIGKILL')).catch(() => undefined)
    },
    lives: () => ({ ended, isBeginning: waiting !== undefined }),
    clock,
  }
}
