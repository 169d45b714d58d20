/**
 * The failures of a trial, derived from its seed: link and processes, clocks, disk, and a restored hub, each
 * on a schedule of its own, so that they combine in any order. Everything works again when the load is over.
 */
import { cpSync, renameSync, rmSync } from 'node:fs'
import { restoreFolder } from '#store/backup/restore.ts'
import { createDice } from '#test/crash/plan.ts'
import { oddAnswers } from '#test/kit/fault-answers.ts'
import { type Fault, faults } from '#test/kit/fault-proxy.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import type { SmallDisk } from '#test/kit/small-disk.ts'
import type { Phoenix } from './phoenix.ts'
import type { Watcher } from './watcher.ts'
import { bounded, pause } from './writers.ts'

export interface Scene {
  readonly site: Phoenix
  readonly hub: Phoenix
  readonly proxy: { set(fault: Fault): Promise<void> }
  readonly disk: SmallDisk | undefined
  readonly watcher: Watcher
  /** Whether the hub is restored from older copies. */
  readonly restoresHub: boolean
  /** The load. */
  readonly until: Promise<void>
}

interface Schedule {
  readonly dice: () => number
  readonly isOver: () => boolean
  /** Waits for some time, at most until the load is over. */
  readonly wait: (fromMs: number, toMs: number) => Promise<unknown>
  /** Counts and logs an action. */
  readonly does: (what: string) => void
}

/** Causes failures until the load is over, and ends them. Returns the number of each. */
export async function troubles(
  { seed, log }: { readonly seed: number; readonly log: (line: string) => void },
  scene: Scene,
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {}
  let isOver = false
  const over = scene.until.finally(() => {
    isOver = true
  })
  over.catch(() => undefined)
  const scheduleOf = (dice: () => number): Schedule => ({
    dice,
    isOver: () => isOver,
    wait: (fromMs, toMs) => Promise.race([over, pause(fromMs + dice() * (toMs - fromMs))]),
    does(what) {
      log(what)
      counts[what] = (counts[what] ?? 0) + 1
    },
  })
  await Promise.all([
    cutsAndKills(scheduleOf(createDice(seed)), scene, createDice(seed + 3_000_003)),
    clocks(scheduleOf(createDice(seed + 1_000_003)), scene),
    fullDisks(scheduleOf(createDice(seed + 2_000_003)), scene),
    restoredHubs(scheduleOf(createDice(seed + 4_000_003)), scene),
  ])
  return counts
}

async function cutsAndKills(
  { dice, isOver, wait, does }: Schedule,
  { site, hub, proxy }: Scene,
  oddDice: () => number,
): Promise<void> {
  const killed = (who: Phoenix): Promise<void> =>
    who.reborn(dice() < 0.8 ? 'SIGKILL' : 'SIGTERM', () => wait(0, 2000))
  const cut = async (fault: Fault): Promise<void> => {
    await proxy.set(fault)
    // Sometimes long enough for the backlog to exceed what the live lane replays.
    await (dice() < 0.4 ? wait(6000, 12_000) : wait(200, 3000))
  }
  while (!isOver()) {
    await wait(500, 4000)
    const kind = dice()
    const plain = faults[Math.floor(dice() * faults.length)]!
    // Uses random numbers of its own, so that earlier seeds keep their schedule.
    const odd = oddAnswers[Math.floor(oddDice() * oddAnswers.length)]!
    const fault = oddDice() < 0.4 ? odd : plain
    const [what, act]: [string, () => Promise<void>] =
      kind < 0.12
        ? ['gateway killed', () => killed(site)]
        : kind < 0.24
          ? ['hub killed', () => killed(hub)]
          : kind < 0.32
            ? [`gateway killed while ${fault}`, () => cut(fault).then(() => killed(site))]
            : [String(fault), () => cut(fault)]
    does(what)
    await act()
    if (dice() < 0.8) await proxy.set('none')
  }
  await proxy.set('none')
}

const [secondMs, hourMs, dayMs] = [1000, 3_600_000, 86_400_000]

/** Clocks that are set forwards and back a little, that jump and return, and that start in 1970. */
async function clocks({ dice, isOver, wait, does }: Schedule, { site, hub }: Scene): Promise<void> {
  const between = (from: number, to: number): number => from + dice() * (to - from)
  while (!isOver()) {
    await wait(1000, 6000)
    if (isOver()) break
    const [who, name]: [Phoenix, string] = dice() < 0.7 ? [site, 'gateway'] : [hub, 'hub']
    const { clock } = who
    const kind = dice()
    if (kind < 0.25) {
      does(`clock of the ${name} set forward`)
      await clock.set(between(10 * secondMs, hourMs))
    } else if (kind < 0.5) {
      does(`clock of the ${name} set back`)
      await clock.set(-between(3 * secondMs, 20 * secondMs))
    } else if (kind < 0.75) {
      does(`clock of the ${name} jumps and comes back`)
      const by = Math.round((dice() < 0.5 ? -1 : 1) * between(hourMs, 300 * dayMs))
      const before = who.lives()
      clock.jump(by)
      await wait(1000, 4000)
      // A process started meanwhile sees the return as the jump; it trusts it when the time service reports
      // it.
      const isNew = before.isBeginning || before.ended !== who.lives().ended
      if (isNew) await clock.set(-by)
      // Also slightly wrong, like real clocks.
      else clock.jump(-by - 300)
      await wait(1500, 2500)
    } else {
      does(`${name} boots in 1970`)
      const by = -56 * 365 * dayMs
      await who.reborn('SIGKILL', async () => {
        clock.jump(by)
        clock.forget()
        await wait(0, 1000)
      })
      await wait(1000, 5000)
      await clock.set(-by)
    }
  }
}

async function fullDisks({ isOver, wait, does }: Schedule, { disk }: Scene): Promise<void> {
  while (disk !== undefined && !isOver()) {
    await wait(3000, 15_000)
    if (isOver()) break
    does('disk full')
    disk.fill()
    await wait(500, 4000)
    disk.free()
  }
}

/**
 * A hub that continues from an older copy of itself while others keep writing to it; nothing informs the
 * gateway.
 */
async function restoredHubs(
  { isOver, wait, does }: Schedule,
  { hub, watcher, restoresHub }: Scene,
): Promise<void> {
  const others = writeAlongside(hub, isOver)
  while (restoresHub && !isOver()) {
    await wait(500, 4000)
    const backup = isOver() ? undefined : await backupOf(hub)
    if (backup === undefined) continue
    await wait(500, 9000)
    if (isOver()) break
    does('hub restored')
    const { dataFolder } = await hub.now()
    await hub.reborn('SIGKILL', async () => {
      const [kept, fresh] = [`${dataFolder}-kept`, `${dataFolder}-fresh`]
      cpSync(backup, kept, { recursive: true })
      restoreFolder(kept, fresh, { now: Date.now(), onProgress: () => undefined })
      for (const gone of [kept, dataFolder]) rmSync(gone, { recursive: true })
      renameSync(fresh, dataFolder)
      watcher.forget()
      await wait(0, 500)
    })
  }
  await others
}

/** The path of a new backup; undefined if the gateway was killed during it. */
async function backupOf(who: Phoenix): Promise<string | undefined> {
  try {
    const asked = httpClient((await who.now()).httpUrl).send('POST', '/selvedge/v1/backups', undefined)
    const reply = await bounded(asked, 10_000)
    return reply.status === 201 ? (reply.json() as { path: string }).path : undefined
  } catch {
    return undefined
  }
}

/** Another client writes other data to a hub, as far as it accepts it. */
async function writeAlongside(hub: Phoenix, isOver: () => boolean): Promise<void> {
  for (let i = 0; !isOver(); i++) {
    const body = [{ id: `urn:other:${i % 50}`, type: 'Other', n: { type: 'Property', value: i } }]
    await bounded(
      httpClient((await hub.now()).httpUrl).send('POST', '/ngsi-ld/v1/entityOperations/upsert', body),
      5000,
    ).catch(() => undefined)
    await pause(20)
  }
}
