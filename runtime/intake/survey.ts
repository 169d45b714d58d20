/**
 * Lists the content of the quarantine for an operator: devices waiting for acceptance, and refused frames,
 * grouped by topic and reason. The held frames are decoded again, so the lists reflect the current mappings.
 * Every frame in quarantine is in at least one of the two lists.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Frame, Reading } from '#contract'
import type { Claims } from './claims.ts'
import type { Decision, DeviceAdmission } from './device-admission.ts'
import type { Quarantine, Quarantined } from './quarantine.ts'
import { judgeReading } from './time-rules.ts'

interface Sighting {
  readonly topic: string
  readonly bridge: string | undefined
  readonly frames: number
  /** Milliseconds since 1970 UTC. */
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  /** The last frame; its payload is truncated. */
  readonly lastPayload: Uint8Array
  readonly lastBytes: number
}

export interface WaitingDevice extends Sighting {
  readonly device: string
  /** Readings of its last frame. */
  readonly readings: readonly Reading[]
}

/** Frames of one topic without a waiting device: the payload, its times or the mapping is wrong. */
export interface UndecodedGroup extends Sighting {
  readonly reason: string
  /** Devices named in the last frame. */
  readonly devices: readonly string[]
}

/** Both lists begin with the newest frame. */
export interface DeviceSurvey {
  readonly waiting: readonly WaitingDevice[]
  readonly undecoded: readonly UndecodedGroup[]
}

/** A frame in quarantine, and its readings as decoded now. */
export interface HeldFrame extends Quarantined {
  readonly q: number
  readonly readings: readonly Reading[]
  /** Readings that the intake would store if their device were accepted. */
  readonly storable: readonly Reading[]
}

export interface SurveyPorts {
  readonly door: Door
  readonly admission: DeviceAdmission
  readonly claims: Claims
  readonly quarantine: Quarantine
  readonly clock: Pick<Clock, 'trust'>
}

/** Number of readings of one frame in the lists. */
const readingsShown = 16

export function createDeviceSurvey({ door, admission, claims, quarantine, clock }: SurveyPorts) {
  function decoded(q: number): HeldFrame | undefined {
    const found = quarantine.find(q)
    if (found === undefined) return undefined
    const { frame } = found
    const isSmall = frame.payload.length <= limits.frameBytesMax.value
    const readings = (isSmall && claims.find(frame)?.decode(frame).readings) || []
    const isSynced = clock.trust?.stretch() === undefined
    const storable = readings.filter((one) => judgeReading(one, frame, isSynced).refused === undefined)
    return { ...found, q, readings, storable }
  }

  /** Calls `visit` with each frame in quarantine, oldest first; yields between frames. */
  async function each(visit: (held: HeldFrame) => void): Promise<void> {
    for (const q of quarantine.waiting()) {
      await nextTurn()
      const held = decoded(q)
      if (held !== undefined) visit(held)
    }
  }

  /** The decisions about devices, taken in the order of works, so that they include the newest choice. */
  const decide = (devices: Iterable<string>): Promise<ReadonlyMap<string, Decision>> =>
    door.commit((stage) => new Map([...devices].map((device) => [device, admission.of(stage, device)])))

  async function survey(): Promise<DeviceSurvey> {
    const byDevice = new Map<string, WaitingDevice>()
    const refused: (UndecodedGroup & { readonly storable: readonly string[] })[] = []
    await each(({ frame, bridge, reason, readings, storable }) => {
      const byName = Map.groupBy(storable, ({ device }) => device)
      let isListed = true
      for (const [device, all] of byName) {
        isListed = byDevice.has(device) || byDevice.size < limits.devicesListedMax.value
        if (!isListed) break
        const sighting = sightingOf(frame, bridge, byDevice.get(device))
        byDevice.delete(device)
        byDevice.set(device, { device, ...sighting, readings: all.slice(0, readingsShown) })
      }
      if (!isListed) return
      const devices = [...new Set(readings.map(({ device }) => device))].slice(0, readingsShown)
      refused.push({ ...sightingOf(frame, bridge, undefined), reason, devices, storable: [...byName.keys()] })
    })
    const decisions = await decide(byDevice.keys())
    const isWaiting = (device: string): boolean => decisions.get(device) === 'waiting'
    const undecoded = grouped(refused.filter(({ storable }) => !storable.some(isWaiting)))
    const waiting = [...byDevice.values()].filter(({ device }) => isWaiting(device))
    return { waiting: waiting.toReversed(), undecoded: undecoded.toReversed() }
  }

  return Object.freeze({ survey, each, decide })
}

export type Surveyor = ReturnType<typeof createDeviceSurvey>

function sightingOf(frame: Frame, bridge: string | undefined, before: Sighting | undefined): Sighting {
  return {
    topic: frame.topic,
    bridge,
    frames: (before?.frames ?? 0) + 1,
    firstSeenAt: before?.firstSeenAt ?? frame.receivedAt,
    lastSeenAt: frame.receivedAt,
    lastPayload: frame.payload.subarray(0, limits.payloadShownBytesMax.value),
    lastBytes: frame.payload.length,
  }
}

/** By topic and reason; the group with the newest frame last. */
function grouped(refused: readonly UndecodedGroup[]): UndecodedGroup[] {
  const groups = new Map<string, UndecodedGroup>()
  for (const { topic, reason, ...last } of refused) {
    const key = `${topic}\u0000${reason}`
    const { frames = 0, firstSeenAt = last.firstSeenAt } = groups.get(key) ?? {}
    groups.delete(key)
    groups.set(key, { ...last, topic, reason, frames: frames + 1, firstSeenAt })
  }
  return [...groups.values()]
}
