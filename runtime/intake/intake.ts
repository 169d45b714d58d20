/**
 * The intake of frames. A bridge decodes a frame before the commit. When the work is decided, its readings
 * become observations of known streams; a new device is provisioned first. A frame is accepted as a whole or
 * not at all. An acknowledged frame is on disk as observations, recognized as a duplicate, or in quarantine
 * with the reason.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock, Stretch } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Observer } from '#broker/entities/observer.ts'
import type { DecodeProblem, Frame, Reading } from '#contract'
import { type Channel, type Channels, channelKey } from './channels.ts'
import type { Claimant, Claims } from './claims.ts'
import type { Decision, DeviceAdmission } from './device-admission.ts'
import { createDigestWindow } from './digest-window.ts'
import type { Quarantine } from './quarantine.ts'
import type { FirstReading } from './site-model.ts'
import { hasOwnTime, judgeReading, type Stamp } from './time-rules.ts'
import type { Unclaimed } from './unclaimed.ts'

/** A frame that a bridge claimed and decoded, ready to be decided as part of a work. */
export interface AcceptedFrame {
  /** Memory it needs until it is decided. */
  readonly bytes: number
  /** Number of readings that will be observed, and the problems of the others. */
  readonly accepted: number
  readonly problems: readonly DecodeProblem[]
  /** Returns problems of readings that were held back because their device is not accepted. */
  decide(stage: Stage): readonly DecodeProblem[]
}

/** A frame with readings to observe. */
export interface Readable extends AcceptedFrame {
  /** Its devices, collected on demand: only the release of held frames needs them. */
  devices(): ReadonlySet<string>
}

/** The outcome for a frame, once it is on disk. */
export interface FrameOutcome {
  /** Number of accepted readings, duplicates included. */
  readonly accepted: number
  /** Number of valid readings held back because of their device; `problems` has the reasons. */
  readonly held: number
  readonly problems: readonly DecodeProblem[]
}

export interface Intake {
  /** Decodes a frame. Undefined when no bridge claims it. Never throws. */
  accept(frame: Frame): AcceptedFrame | undefined
  /**
   * Commits one frame on its own and resolves when it is on disk.
   * @throws store.busy, store.full, intake.unclaimed
   */
  take(frame: Frame): Promise<FrameOutcome>
  /** Decodes a held frame, which is never a duplicate. Undefined when no bridge claims it. */
  acceptHeld(frame: Frame): AcceptedFrame | Readable | undefined
}

export interface IntakePorts {
  readonly door: Door
  readonly observer: Observer
  readonly claims: Claims
  readonly channels: Channels
  readonly admission: DeviceAdmission
  readonly quarantine: Quarantine
  readonly unclaimed: Pick<Unclaimed, 'note'>
  /** Ids of the gateway's own MQTT clients, whose topics are not reported to an operator. */
  readonly ownClients: ReadonlySet<string>
  readonly clock: Clock
  readonly metrics: Metrics
}

/** A reading with its time. */
interface Timed {
  readonly reading: Reading
  readonly stamp: Stamp
}

/** Approximate memory of a frame beside its payload. */
const overheadBytes = 400

export function createIntake(ports: IntakePorts): Intake {
  const { observer, channels, admission, quarantine, metrics } = ports
  const frames = metrics.counter('selvedge_frames_total')
  const rejected = metrics.counter('selvedge_readings_rejected_total')
  const observations = metrics.counter('selvedge_observations_total')
  const skips = metrics.counter('selvedge_readings_skipped_total')
  const repeats = metrics.counter('selvedge_observations_duplicate_total')
  const digests = createDigestWindow()

  /** `isKept` is true for a held frame, which is never a duplicate. */
  function accept(frame: Frame, isKept: boolean): AcceptedFrame | Readable | undefined {
    const claimant = ports.claims.find(frame)
    if (claimant === undefined) return undefined
    frames.value++
    const bytes = frame.payload.length + overheadBytes
    if (frame.payload.length > limits.frameBytesMax.value) {
      const reason = `the frame has ${frame.payload.length} bytes; the maximum is ${limits.frameBytesMax.value}`
      return refusal(frame, claimant, [{ reason }], bytes)
    }
    const { readings, problems, skipped = 0 } = claimant.decode(frame)
    skips.value += skipped
    const stretch = ports.clock.trust?.stretch()
    const timed: Timed[] = []
    let refused: DecodeProblem[] | undefined
    let isUntimed = false
    for (const reading of readings) {
      const verdict = judgeReading(reading, frame, stretch === undefined)
      if (verdict.refused === undefined) {
        timed.push({ reading, stamp: verdict })
        isUntimed ||= !isKept && !hasOwnTime(reading)
      } else {
        rejected.value++
        refused ??= []
        // A stale retained value is expected, so it does not put the frame into quarantine.
        if (verdict.refused !== 'retained') refused.push({ reason: verdict.reason, field: reading.field })
      }
    }
    const all = refused === undefined ? problems : [...problems, ...refused]
    if (timed.length === 0) return all.length === 0 ? nothing(bytes) : refusal(frame, claimant, all, bytes)
    return {
      bytes,
      accepted: timed.length,
      problems: all,
      devices: () => new Set(timed.map(({ reading }) => reading.device)),
      decide(stage) {
        // Only a decided frame is remembered, so a frame that is never decided may arrive again.
        if (isUntimed) {
          if (!digests.admit(frame, performance.now())) {
            repeats.value += timed.length
            return noProblems
          }
          stage.undone(() => digests.forget(frame))
        }
        const held = observeIn(stretch, stage, frame, claimant, timed)
        // No reading was observed, so a redelivery is not a duplicate: it gets the same answer.
        if (isUntimed && held.length === timed.length) digests.forget(frame)
        return held
      },
    }
  }

  /**
   * Corrects the times of readings received while the clock was not set, or marks them for later correction.
   */
  function observeIn(
    stretch: Stretch | undefined,
    stage: Stage,
    frame: Frame,
    claimant: Claimant,
    timed: readonly Timed[],
  ): readonly DecodeProblem[] {
    if (stretch === undefined) return observeAll(stage, frame, claimant, timed)
    const shift = stretch.shift
    if (shift !== undefined)
      return observeAll(
        stage,
        frame,
        claimant,
        timed.map((one) => shifted(one, shift)),
      )
    const times = timed.filter(isByGateway).map(({ stamp }) => stamp.observedAt)
    return observeAll(stage.unset(stretch, new Set(times)), frame, claimant, timed)
  }

  function observeAll(
    stage: Stage,
    frame: Frame,
    claimant: Claimant,
    timed: readonly Timed[],
  ): readonly DecodeProblem[] {
    for (let i = 0; i < timed.length; i++) {
      const { reading, stamp } = timed[i]!
      const channel = channels.find(channelKey(reading))
      if (channel === undefined || !channels.fits(channel, reading, stamp)) {
        return provisionAndObserve(stage, frame, claimant, timed.slice(i))
      }
      observeKnown(stage, channel, reading, stamp)
    }
    return noProblems
  }

  function observeKnown(stage: Stage, channel: Channel, reading: Reading, stamp: Stamp): void {
    const verdict = observer.observeStream(stage, channel.stream, stamp.observedAt, reading.value, false)
    if (verdict === 'new' && channel.learning !== undefined) channels.learn(stage, channel, stamp.observedAt)
  }

  /**
   * The slow path, for a field that is not in memory: provisions admitted devices and quarantines the frame
   * of others.
   */
  function provisionAndObserve(
    stage: Stage,
    frame: Frame,
    claimant: Claimant,
    timed: readonly Timed[],
  ): readonly DecodeProblem[] {
    const { admitted, held } = partition(stage, frame, claimant, timed)
    const written = new Set<Reading>()
    for (const firsts of newFieldsOf(admitted).values()) {
      for (const reading of channels.provision(stage, firsts, frame, claimant.format)) written.add(reading)
    }
    for (const { reading, stamp } of admitted) {
      const known = channels.find(channelKey(reading))
      const isOpen = known !== undefined && channels.fits(known, reading, stamp)
      const channel = isOpen ? known : channels.open(stage, firstOf(reading, stamp), frame)
      if (channel === undefined || written.has(reading)) observations.value++
      else observeKnown(stage, channel, reading, stamp)
    }
    return held
  }

  /** Separates the readings of admitted devices, and returns the problems of the others. */
  function partition(
    stage: Stage,
    frame: Frame,
    claimant: Claimant,
    timed: readonly Timed[],
  ): { admitted: readonly Timed[]; held: readonly DecodeProblem[] } {
    const decisions = new Map<string, Decision>()
    const held: DecodeProblem[] = []
    const admitted = timed.filter(({ reading: { device, field } }) => {
      const decision = decisions.get(device) ?? admission.of(stage, device)
      decisions.set(device, decision)
      if (decision === 'admitted') return true
      if (decision === 'ignored') rejected.value++
      held.push({ field, reason: reasonOf(device, decision) })
      return false
    })
    const waiting = [...decisions].find(([, decision]) => decision === 'waiting')?.[0]
    if (waiting !== undefined)
      quarantine.put(stage, frame, claimant.name, `the device ${waiting} is not accepted`)
    return { admitted, held }
  }

  /** By device, the first reading of each field that is not in memory. */
  function newFieldsOf(timed: readonly Timed[]): ReadonlyMap<string, FirstReading[]> {
    const seen = new Set<string>()
    const byDevice = new Map<string, FirstReading[]>()
    for (const { reading, stamp } of timed) {
      const key = channelKey(reading)
      const known = channels.find(key)
      if (seen.has(key) || (known !== undefined && channels.fits(known, reading, stamp))) continue
      seen.add(key)
      const firsts = byDevice.get(reading.device)
      if (firsts === undefined) byDevice.set(reading.device, [firstOf(reading, stamp)])
      else firsts.push(firstOf(reading, stamp))
    }
    return byDevice
  }

  function refusal(
    frame: Frame,
    claimant: Claimant,
    problems: readonly DecodeProblem[],
    bytes: number,
  ): AcceptedFrame {
    const reason = problems
      .map(({ field, reason: why }) => (field === undefined ? why : `${field}: ${why}`))
      .join('; ')
    return {
      bytes,
      accepted: 0,
      problems,
      decide(stage) {
        quarantine.put(stage, frame, claimant.name, reason.slice(0, reasonCharactersMax))
        return noProblems
      },
    }
  }

  return Object.freeze({
    accept(frame) {
      const work = accept(frame, false)
      const isOwn = frame.transport === 'mqtt' && ports.ownClients.has(frame.source ?? '')
      if (work === undefined && !isOwn && !ports.claims.isIgnored(frame.topic)) ports.unclaimed.note(frame)
      return work
    },
    acceptHeld: (frame) => accept(frame, true),
    take(frame) {
      const work = accept(frame, false)
      if (work === undefined) {
        return Promise.reject(
          new GatewayError('intake.unclaimed', `no bridge claims ${frame.contentType ?? frame.topic}`),
        )
      }
      return ports.door.commit(work.decide, { bytes: work.bytes }).then((held) => ({
        accepted: work.accepted - held.length,
        held: held.length,
        problems: [...work.problems, ...held],
      }))
    },
  } satisfies Intake)
}

const isByGateway = ({ stamp }: Timed): boolean => stamp.timeSource === 'gateway'

const shifted = (one: Timed, shift: number): Timed =>
  isByGateway(one) ? { ...one, stamp: { ...one.stamp, observedAt: one.stamp.observedAt + shift } } : one

const reasonCharactersMax = 1000
const noProblems: readonly DecodeProblem[] = Object.freeze([])

const firstOf = (reading: Reading, { observedAt, timeSource }: Stamp): FirstReading => ({
  reading,
  observedAt,
  timeSource,
})

const reasonOf = (device: string, decision: 'waiting' | 'ignored'): string =>
  decision === 'ignored'
    ? `readings of the device ${device} are ignored`
    : `the device ${device} is not accepted yet; the frame waits in quarantine`

/** A frame without anything to write. */
function nothing(bytes: number, accepted = 0): AcceptedFrame {
  return { bytes, accepted, problems: noProblems, decide: () => noProblems }
}
