/**
 * Intake: a frame arrives, its bridge decodes it before the commit, and while the work is decided its readings become
 * observations of known streams, or a device is provisioned first. A frame is taken whole or not at all: what is
 * acknowledged is on disk as observations, as a recognised repeat, or in quarantine with its reason.
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
import type { Admission, Decision } from './device-admission.ts'
import { createDigestWindow } from './digest-window.ts'
import type { Quarantine } from './quarantine.ts'
import type { FirstReading } from './site-model.ts'
import { hasOwnTime, judgeReading, type Stamp } from './time-rules.ts'
import type { Unclaimed } from './unclaimed.ts'

/** A frame that a bridge claimed, decoded, ready to be decided as part of a work. */
export interface AcceptedFrame {
  /** Bytes it holds while it waits. */
  readonly bytes: number
  /** Readings that will be observed, and what was wrong with the rest. */
  readonly accepted: number
  readonly problems: readonly DecodeProblem[]
  /** Answers the readings that were held back after all, since their device is not accepted. */
  decide(stage: Stage): readonly DecodeProblem[]
}

/** A frame with readings to observe. */
export interface Readable extends AcceptedFrame {
  /** Its devices. */
  readonly devices: ReadonlySet<string>
}

/** What became of a frame, once it is on disk. */
export interface FrameOutcome {
  /** Readings that were taken, repeats included. */
  readonly accepted: number
  /** Readings that could be taken but for their device; `problems` has the reasons. */
  readonly held: number
  readonly problems: readonly DecodeProblem[]
}

export interface Intake {
  /** Decodes a frame. Undefined when no bridge claims it. Never throws. */
  accept(frame: Frame): AcceptedFrame | undefined
  /** Takes one frame by itself and settles when it is on disk. @throws store.busy, store.full, intake.unclaimed */
  take(frame: Frame): Promise<FrameOutcome>
  /** Decodes a frame that was held, which is no repeat of another. Undefined when no bridge claims it. */
  acceptHeld(frame: Frame): AcceptedFrame | Readable | undefined
}

export interface IntakePorts {
  readonly door: Door
  readonly observer: Observer
  readonly claims: Claims
  readonly channels: Channels
  readonly admission: Admission
  readonly quarantine: Quarantine
  readonly unclaimed: Pick<Unclaimed, 'note'>
  /** Ids of MQTT clients of the gateway itself: their topics are no news to an operator. */
  readonly ownClients: ReadonlySet<string>
  readonly clock: Clock
  readonly metrics: Metrics
}

/** A reading with its time. */
interface Timed {
  readonly reading: Reading
  readonly stamp: Stamp
}

/** What a frame costs in memory beside its payload, roughly. */
const overheadBytes = 400

export function createIntake(ports: IntakePorts): Intake {
  const { observer, channels, admission, quarantine, metrics } = ports
  const frames = metrics.counter('selvedge_frames_total')
  const rejected = metrics.counter('selvedge_readings_rejected_total')
  const observations = metrics.counter('selvedge_observations_total')
  const skips = metrics.counter('selvedge_readings_skipped_total')
  const repeats = metrics.counter('selvedge_observations_duplicate_total')
  const digests = createDigestWindow()

  /** `isKept` is true of a frame that was held, which is no repeat of another. */
  function accept(frame: Frame, isKept: boolean): AcceptedFrame | Readable | undefined {
    const claimant = ports.claims.find(frame)
    if (claimant === undefined) return undefined
    frames.value++
    const bytes = frame.payload.length + overheadBytes
    if (frame.payload.length > limits.frameBytesMax.value) {
      const reason = `the frame has ${frame.payload.length} bytes, more than ${limits.frameBytesMax.value}`
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
        // Old news is expected from a retained message and no reason to keep the frame.
        if (verdict.refused !== 'retained') refused.push({ reason: verdict.reason, field: reading.field })
      }
    }
    const all = refused === undefined ? problems : [...problems, ...refused]
    if (timed.length === 0) return all.length === 0 ? nothing(bytes) : refusal(frame, claimant, all, bytes)
    return {
      bytes,
      accepted: timed.length,
      problems: all,
      devices: new Set(timed.map(({ reading }) => reading.device)),
      decide(stage) {
        // Only what is really taken is remembered: a frame that never reaches its decision may come again.
        if (isUntimed) {
          if (!digests.admit(frame, performance.now())) {
            repeats.value += timed.length
            return noProblems
          }
          stage.undone(() => digests.forget(frame))
        }
        const held = observeIn(stretch, stage, frame, claimant, timed)
        // Nothing was observed, so what comes again is no repeat: it is told the same.
        if (isUntimed && held.length === timed.length) digests.forget(frame)
        return held
      },
    }
  }

  /** What was received while the clock was unsynced is put right, or marked to be put right. */
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

  /** The slow way, when a field is not in memory: admitted devices are provisioned, the others' frame is kept. */
  function provisionAndObserve(
    stage: Stage,
    frame: Frame,
    claimant: Claimant,
    timed: readonly Timed[],
  ): readonly DecodeProblem[] {
    const { admitted, held } = sift(stage, frame, claimant, timed)
    const written = new Set<Reading>()
    for (const firsts of strangersOf(admitted).values()) {
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

  /** The readings of admitted devices, and what is to be told of the rest. */
  function sift(
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
  function strangersOf(timed: readonly Timed[]): ReadonlyMap<string, FirstReading[]> {
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
          new GatewayError('intake.unclaimed', `no bridge reads ${frame.contentType ?? frame.topic}`),
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
    ? `readings of the device ${device} are not taken`
    : `the device ${device} is not accepted yet; the frame waits in quarantine`

/** A frame of which nothing is to be written. */
function nothing(bytes: number, accepted = 0): AcceptedFrame {
  return { bytes, accepted, problems: noProblems, decide: () => noProblems }
}
