/**
 * What goes wrong in a trial, as it follows from its seed: the way and the processes, the clocks, the disk, and a hub that is
 * restored, each by a schedule of its own, so they meet in every order. All is well again when the traffic is over.
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
  /** Whether the hub goes back to older copies of itself. */
  readonly restoresHub: boolean
  /** The traffic. */
  readonly until: Promise<void>
}

interface Schedule {
  readonly dice: () => number
  readonly isOver: () => boolean
  /** Waits for some time, at most until it is over. */
  readonly wait: (fromMs: number, toMs: number) => Promise<unknown>
  /** Counts and tells what is done. */
  readonly does: (what: string) => void
}

/** Trouble until the traffic is over, and an end of it. Returns how often each was. */
export async function troubles(
  { seed, tell }: { readonly seed: number; readonly tell: (line: string) => void },
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
      tell(what)
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
    // Now and then long enough for the backlog to be more than the live lane goes through.
    await (dice() < 0.4 ? wait(6000, 12_000) : wait(200, 3000))
  }
  while (!isOver()) {
    await wait(500, 4000)
    const kind = dice()
    const plain = faults[Math.floor(dice() * faults.length)]!
    // By dice of their own: what a seed did before these were known, it does at the same times.
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

/** Clocks that are set, forwards and back a little, that jump and come back, and that begin in 1970. */
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
      // Who began meanwhile knows no other time, so for it the way back is the jump: it is believed when somebody says so.
      const isNew = before.isBeginning || before.ended !== who.lives().ended
      if (isNew) await clock.set(-by)
      // And a little off, as clocks are.
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

/** A hub that goes on from an older copy of itself, while others go on writing to it; the gateway is told by nobody. */
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

/** The path of a new backup; undefined where the gateway died over it. */
async function backupOf(who: Phoenix): Promise<string | undefined> {
  try {
    const asked = httpClient((await who.now()).httpUrl).send('POST', '/selvedge/v1/backups', undefined)
    const reply = await bounded(asked, 10_000)
    return reply.status === 201 ? (reply.json() as { path: string }).path : undefined
  } catch {
    return undefined
  }
}

/** Somebody else writes to a hub what no gateway tells it, as far as it takes that. */
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
