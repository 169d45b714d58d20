/**
 * What is in quarantine, in the terms of an operator: devices that wait to be accepted, and frames that could not be
 * decoded, grouped by topic and reason. It decodes the held frames anew, so it reflects the mappings of now.
 */
import { limits } from '#base/limits.ts'
import type { Door } from '#broker/door.ts'
import type { Frame, Reading } from '#contract'
import type { Admission, Decision } from './admission.ts'
import type { Claims } from './claims.ts'
import type { Quarantine, Quarantined } from './quarantine.ts'

interface Sighting {
  readonly topic: string
  readonly bridge: string | undefined
  readonly frames: number
  /** Milliseconds since 1970 UTC. */
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  /** The last frame, its payload cut. */
  readonly lastPayload: Uint8Array
  readonly lastBytes: number
}

export interface WaitingDevice extends Sighting {
  readonly device: string
  /** Readings of its last frame. */
  readonly readings: readonly Reading[]
}

export interface UndecodedGroup extends Sighting {
  readonly reason: string
}

/** The device or topic with the newest frame first. */
export interface Survey {
  readonly waiting: readonly WaitingDevice[]
  readonly undecoded: readonly UndecodedGroup[]
}

/** A frame in quarantine, and the devices that its bridge finds in it now. */
export interface HeldFrame extends Quarantined {
  readonly q: number
  readonly readings: readonly Reading[]
}

export interface SurveyPorts {
  readonly door: Door
  readonly admission: Admission
  readonly claims: Claims
  readonly quarantine: Quarantine
}

/** A frame may take some milliseconds to decode; requests and packets go on between two. */
export const letOthersWork = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Readings of one frame that a survey remembers. */
const readingsShown = 16

export function createSurvey({ door, admission, claims, quarantine }: SurveyPorts) {
  function decoded(q: number): HeldFrame | undefined {
    const found = quarantine.find(q)
    if (found === undefined) return undefined
    const { frame } = found
    const isSmall = frame.payload.length <= limits.frameBytesMax.value
    return { ...found, q, readings: (isSmall && claims.find(frame)?.decode(frame).readings) || [] }
  }

  /** Calls `visit` with each frame in quarantine, oldest first; other work goes on between. */
  async function each(visit: (held: HeldFrame) => void): Promise<void> {
    for (const q of quarantine.waiting()) {
      await letOthersWork()
      const held = decoded(q)
      if (held !== undefined) visit(held)
    }
  }

  /** What is decided about devices; in the order of works, so that it includes the choice made last. */
  const decide = (devices: Iterable<string>): Promise<ReadonlyMap<string, Decision>> =>
    door.commit((stage) => new Map([...devices].map((device) => [device, admission.of(stage, device)])))

  async function survey(): Promise<Survey> {
    const byDevice = new Map<string, WaitingDevice>()
    const undecoded = new Map<string, UndecodedGroup>()
    await each(({ frame, bridge, reason, readings }) => {
      const byName = Map.groupBy(readings, ({ device }) => device)
      for (const [device, all] of byName) {
        if (byDevice.size >= limits.devicesListedMax.value && !byDevice.has(device)) continue
        const sighting = sightingOf(frame, bridge, byDevice.get(device))
        byDevice.delete(device)
        byDevice.set(device, { device, ...sighting, readings: all.slice(0, readingsShown) })
      }
      if (readings.length > 0) return
      const key = `${frame.topic}\u0000${reason}`
      const sighting = sightingOf(frame, bridge, undecoded.get(key))
      undecoded.delete(key)
      undecoded.set(key, { ...sighting, reason })
    })
    const decisions = await decide(byDevice.keys())
    const waiting = [...byDevice.values()].filter(({ device }) => decisions.get(device) === 'waiting')
    return { waiting: waiting.toReversed(), undecoded: [...undecoded.values()].toReversed() }
  }

  return Object.freeze({ survey, each, decide })
}

export type Surveyor = ReturnType<typeof createSurvey>

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
