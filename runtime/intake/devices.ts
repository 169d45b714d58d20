/**
 * Lists of devices for an operator, and decisions about them while the gateway runs: devices waiting for
 * acceptance, frames that could not be decoded, topics that no bridge reads. A decision is durable before it
 * is answered, applies at once, and releases the frames that were held for it. It never contradicts the
 * settings file, which belongs to the operator. The CLI replaces JSON members in errors by its flags.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { DecodeProblem, Reading } from '#contract'
import { badRequestData, conflict, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Channels } from './channels.ts'
import type { Choice, ChoiceKind, Choices, Mapping } from './choices.ts'
import { type BridgeProposal, type Claims, matchesFilter } from './claims.ts'
import type { DeviceAdmission } from './device-admission.ts'
import type { OtherTopicOf } from './device-topics.ts'
import { assertUnsettled, type MappingRequest, type PlanMapping } from './mapping-plan.ts'
import type { Quarantine } from './quarantine.ts'
import type { Release } from './release.ts'
import type { Surveyor, UndecodedGroup, WaitingDevice } from './survey.ts'
import type { Unclaimed, UnclaimedTopic } from './unclaimed.ts'

export interface ListedTopic extends UnclaimedTopic {
  readonly proposal: BridgeProposal | undefined
}

export interface DeviceLists {
  readonly waiting: readonly WaitingDevice[]
  readonly undecoded: readonly UndecodedGroup[]
  readonly unclaimed: readonly ListedTopic[]
  readonly choices: readonly Choice[]
}

/** All information about one name. */
export interface DeviceView {
  readonly waiting: WaitingDevice | undefined
  readonly undecoded: readonly UndecodedGroup[]
  readonly unclaimed: ListedTopic | undefined
  readonly choices: readonly Choice[]
  /** The content of the topic's last frame, decoded by the proposed bridge. */
  readonly preview:
    | { readonly readings: readonly Reading[]; readonly problems: readonly DecodeProblem[] }
    | undefined
}

/** How to read a topic; members left out are taken from the bridge's proposal. */
export interface AcceptRequest extends MappingRequest {
  readonly kind?: ChoiceKind | undefined
}

export interface Accepted {
  readonly kind: ChoiceKind
  readonly name: string
  readonly mapping: Mapping | undefined
  /** Devices that were accepted. */
  readonly devices: readonly string[]
  /** Held frames that were stored. */
  readonly released: number
}

export interface Ignored {
  readonly kind: ChoiceKind
  readonly name: string
  /** Held frames that were dropped. */
  readonly dropped: number
}

export interface Devices {
  list(): Promise<DeviceLists>
  /** Undefined when nothing is known about the name. */
  show(name: string): Promise<DeviceView | undefined>
  /** @throws ngsi-ld.bad-request-data, ngsi-ld.conflict with the settings, ngsi-ld.too-complex at a limit */
  accept(name: string, request: AcceptRequest): Promise<Accepted>
  /** @throws as `accept` */
  ignore(name: string, kind: ChoiceKind | undefined): Promise<Ignored>
  /**
   * Withdraws a decision; false when there is none.
   * @throws ngsi-ld.not-found when a decision about a pattern applies
   */
  forget(name: string, kind: ChoiceKind | undefined): Promise<boolean>
}

export interface DevicesPorts extends Surveyor, ClockAndLog {
  readonly door: Door
  readonly admission: DeviceAdmission
  readonly channels: Pick<Channels, 'forget'>
  readonly choices: Choices
  readonly claims: Claims
  readonly quarantine: Quarantine
  readonly unclaimed: Unclaimed
  readonly planMapping: PlanMapping
  readonly otherTopicOf: OtherTopicOf
  readonly release: Release
}

export function createDevices(ports: DevicesPorts): Devices {
  const { door, admission, choices, claims, quarantine, unclaimed, release, clock, log } = ports
  useTopics()

  function useTopics(): void {
    for (const { name, mapping } of claims.choose(choices.all('topic')))
      log.warn('intake.mapping-unusable', { topic: name, bridge: mapping?.bridge })
  }

  const listed = (topic: UnclaimedTopic): ListedTopic => ({ ...topic, proposal: proposalOf(topic) })
  const proposalOf = ({ frames }: UnclaimedTopic): BridgeProposal | undefined =>
    frames.length === 0 ? undefined : claims.propose(frames.at(-1)!)

  /** A name with a slash or a wildcard is a topic, unless a device of that name is waiting. */
  async function kindOf(name: string, kind: ChoiceKind | undefined): Promise<ChoiceKind> {
    checkName(name)
    if (kind !== undefined) return kind
    const isTopic = unclaimed.get(name) !== undefined || choices.has('topic', name)
    const isDevice =
      choices.has('device', name) || (await ports.survey()).waiting.some(({ device }) => device === name)
    if (isTopic && isDevice)
      throw badRequestData(`${name} is both a device and a topic; set "kind" to device or topic`)
    if (isTopic !== isDevice) return isTopic ? 'topic' : 'device'
    return /[/+#{]/.test(name) ? 'topic' : 'device'
  }

  async function put(all: readonly Choice[]): Promise<void> {
    await door.commit((stage) => {
      for (const choice of all) choices.put(stage, choice)
    })
    for (const { kind, name, decision } of all) log.info('intake.chosen', { kind, name, decision })
    if (all.some(({ kind }) => kind === 'topic')) useTopics()
  }

  const choiceOf = (
    kind: ChoiceKind,
    name: string,
    decision: Choice['decision'],
    mapping?: Mapping,
  ): Choice => ({ kind, name, decision, mapping, at: clock.now() })

  async function acceptDevice(name: string): Promise<Accepted> {
    if (admission.settled(name) === 'ignored')
      throw conflict(`the settings ignore the device ${name}; remove it from provisioning.ignore`)
    await put([choiceOf('device', name, 'accepted')])
    return { kind: 'device', name, mapping: undefined, devices: [name], released: await release() }
  }

  async function acceptTopic(topic: string, request: AcceptRequest): Promise<Accepted> {
    const plan = ports.planMapping(topic, request)
    const { name, mapping, claimant, frames, isUnchanged } = plan
    const { waiting } = await ports.survey()
    // Accepting a topic by its name also accepts the devices that were seen on it.
    const seen = new Set(waiting.flatMap((one) => (one.topic === topic ? [one.device] : [])))
    for (const frame of frames) {
      await nextTurn()
      for (const { device } of claimant.decode(frame).readings)
        if (seen.size < limits.devicesListedMax.value) seen.add(device)
    }
    if (!plan.isDeviceNamed) await assertUnmerged(topic, seen, waiting)
    const decisions = await ports.decide(seen)
    const devices = [...seen].filter((device) => decisions.get(device) === 'waiting')
    await put([
      ...(isUnchanged ? [] : [choiceOf('topic', name, 'accepted', mapping)]),
      ...devices.map((device) => choiceOf('device', device, 'accepted')),
    ])
    return { kind: 'topic', name, mapping, devices, released: await release() }
  }

  /**
   * Prevents two devices from merging, because names such as `kitchen` occur in many topics.
   * @throws ngsi-ld.conflict
   */
  async function assertUnmerged(
    topic: string,
    seen: ReadonlySet<string>,
    waiting: readonly WaitingDevice[],
  ): Promise<void> {
    await door.commit((stage) => {
      for (const device of seen) {
        const other = ports.otherTopicOf(stage, { device, topic, waiting })
        if (other !== undefined)
          throw conflict(
            `${topic} would become the device ${device}, which is already read from ${other}; set "source.deviceName" to another name, or to ${device} to merge them`,
          )
      }
    })
  }

  async function ignoreDevice(name: string): Promise<number> {
    if (admission.settled(name) === 'admitted')
      throw conflict(`the settings accept the device ${name}; remove it from provisioning`)
    await put([choiceOf('device', name, 'ignored')])
    ports.channels.forget(name)
    const held: { q: number; devices: ReadonlySet<string> }[] = []
    await ports.each(({ q, readings }) => {
      const devices = new Set(readings.map(({ device }) => device))
      if (devices.has(name)) held.push({ q, devices })
    })
    // A single admitted or waiting device keeps the frame.
    const isDropped = (stage: Stage, devices: ReadonlySet<string>): boolean =>
      [...devices].every((device) => admission.of(stage, device) === 'ignored')
    const dropped = await door.commit((stage) => held.filter(({ devices }) => isDropped(stage, devices)))
    return drop(dropped.map(({ q }) => q))
  }

  async function ignoreTopic(filter: string): Promise<number> {
    assertUnsettled(claims, filter)
    await put([choiceOf('topic', filter, 'ignored')])
    const removed = unclaimed.remove((topic) => matchesFilter(filter, topic))
    const held: number[] = []
    await ports.each(({ q, frame }) => {
      if (claims.isIgnored(frame.topic)) held.push(q)
    })
    return (await drop(held)) + removed.reduce((sum, { frames }) => sum + frames.length, 0)
  }

  async function drop(held: readonly number[]): Promise<number> {
    if (held.length > 0)
      await door.commit((stage) => {
        for (const q of held) quarantine.release(stage, q)
      })
    return held.length
  }

  return Object.freeze({
    async list() {
      const { waiting, undecoded } = await ports.survey()
      const topics: ListedTopic[] = []
      for (const topic of unclaimed.all()) {
        await nextTurn()
        topics.push(listed(topic))
      }
      return {
        waiting,
        undecoded,
        unclaimed: topics,
        choices: [...choices.all('device'), ...choices.all('topic')],
      }
    },
    async show(name) {
      const { waiting, undecoded } = await ports.survey()
      const topic = unclaimed.get(name)
      const shown = {
        waiting: waiting.find(({ device }) => device === name),
        undecoded: undecoded.filter(({ topic, devices }) => topic === name || devices.includes(name)),
        unclaimed: topic && listed(topic),
        choices: [...choices.all('device'), ...choices.all('topic')].filter(
          (choice) => choice.name === name || choice === claims.choiceOf(name),
        ),
      }
      const isKnown = shown.waiting || shown.unclaimed || shown.undecoded.length + shown.choices.length > 0
      return isKnown ? { ...shown, preview: previewOf(claims, shown.unclaimed) } : undefined
    },
    async accept(name, request) {
      const kind = await kindOf(
        name,
        request.bridge !== undefined || request.source !== undefined ? 'topic' : request.kind,
      )
      return kind === 'device' ? acceptDevice(name) : acceptTopic(name, request)
    },
    async ignore(name, given) {
      const kind = await kindOf(name, given)
      const dropped = await (kind === 'device' ? ignoreDevice(name) : ignoreTopic(name))
      return { kind, name, dropped }
    },
    async forget(name, given) {
      const kind = await kindOf(name, given)
      if (!choices.has(kind, name)) {
        const covering = kind === 'topic' ? claims.choiceOf(name) : undefined
        if (covering === undefined) return false
        throw notFound(
          `there is no decision about ${name} itself; withdraw the decision about ${covering.name}`,
        )
      }
      await door.commit((stage) => choices.remove(stage, kind, name))
      log.info('intake.chosen', { kind, name, decision: 'none' })
      if (kind === 'topic') useTopics()
      else ports.channels.forget(name)
      return true
    },
  } satisfies Devices)
}

function previewOf(claims: Claims, topic: ListedTopic | undefined): DeviceView['preview'] {
  const frame = topic?.frames.at(-1)
  if (frame === undefined || topic?.proposal === undefined) return undefined
  const { bridge, source, topic: name } = topic.proposal
  const claimant = claims.claimantOf(name, { bridge, source })
  return 'decode' in claimant ? claimant.decode(frame) : undefined
}

function checkName(name: string): void {
  const most = limits.choiceNameCharactersMax.value
  if (name.length === 0 || name.length > most || !name.isWellFormed())
    throw badRequestData(`the name of a device or topic must have 1 to ${most} characters`)
}
