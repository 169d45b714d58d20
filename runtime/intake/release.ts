/**
 * Releases held frames in the order of reception: frames in quarantine whose mapping was corrected or whose
 * devices were accepted, and frames of unclaimed topics that are now mapped. Each frame is stored once: it
 * leaves quarantine in the commit that stores its readings, and releases run one after the other.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Log } from '#base/register/log.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Frame } from '#contract'
import type { Intake } from './intake.ts'
import type { SurveyPorts } from './survey.ts'
import type { Unclaimed } from './unclaimed.ts'

export interface ReleasePorts extends Omit<SurveyPorts, 'clock'> {
  readonly unclaimed: Unclaimed
  readonly intake: Pick<Intake, 'acceptHeld'>
  readonly log: Log
}

/** Releases all frames that can be released now. Resolves to the number of frames stored as observations. */
export type Release = () => Promise<number>

export function createRelease(ports: ReleasePorts): Release {
  const { door, admission, claims, quarantine, unclaimed, intake, log } = ports
  let last: Promise<unknown> = Promise.resolve()

  const isFree = (stage: Stage, devices: ReadonlySet<string>): boolean => {
    const decisions = [...devices].map((device) => admission.of(stage, device))
    return decisions.includes('admitted') && !decisions.includes('waiting')
  }

  /** True when the frame was stored; otherwise it stays. */
  async function fromQuarantine(q: number): Promise<boolean> {
    const found = quarantine.find(q)
    const work = found && intake.acceptHeld(found.frame)
    if (work === undefined || !('devices' in work)) return false
    return door.commit((stage) => {
      if (!isFree(stage, work.devices())) return false
      quarantine.release(stage, q)
      work.decide(stage)
      return true
    })
  }

  /** True when the frame was stored; otherwise it is in quarantine with the reason. */
  async function ofTopic(frame: Frame): Promise<boolean> {
    const work = intake.acceptHeld(frame)
    if (work === undefined) return false
    const held = await door.commit(work.decide, { bytes: work.bytes })
    return work.accepted > held.length
  }

  async function release(): Promise<number> {
    let count = await inTurns(quarantine.waiting(), fromQuarantine)
    for (const { topic, frames } of unclaimed.all()) {
      if (frames.length === 0 || claims.find(frames[0]!) === undefined) continue
      count += await inTurns([...frames], ofTopic)
      unclaimed.remove((one) => one === topic)
    }
    if (count > 0) log.info('intake.released', { frames: count })
    return count
  }

  return () => {
    const released = last.then(release)
    last = released.catch(() => undefined)
    return released
  }
}

/** Decodes items one by one, in order, with other work between, and waits until each batch is stored. */
async function inTurns<T>(items: readonly T[], one: (item: T) => Promise<boolean>): Promise<number> {
  let count = 0
  const size = limits.framesReleasedAtOnce.value
  for (let at = 0; at < items.length; at += size) {
    const started: Promise<boolean>[] = []
    for (const item of items.slice(at, at + size)) {
      const stored = one(item)
      // A failure is thrown below, once all of them have been started.
      stored.catch(() => undefined)
      started.push(stored)
      await nextTurn()
    }
    const done = await Promise.all(started)
    count += done.filter(Boolean).length
  }
  return count
}
