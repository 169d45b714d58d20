/**
 * What an operator sees and decides about devices while the gateway runs: devices that wait, frames that could not be
 * decoded, topics that no bridge reads. A decision is durable when it is answered, holds at once, and releases the frames
 * that were held for it. It never contradicts the settings file, which belongs to the operator.
 */
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Door } from '#broker/door.ts'
import type { Stage } from '#broker/stage.ts'
import type { DecodeProblem, Frame, Reading } from '#contract'
import { badRequestData } from '#ngsi-ld/problem.ts'
import type { Admission } from './admission.ts'
import type { Channels } from './channels.ts'
import type { Choice, ChoiceKind, Choices, Mapping } from './choices.ts'
import { type BridgeProposal, type Claimant, type Claims, matchesFilter } from './claims.ts'
import type { Quarantine } from './quarantine.ts'
import type { Release } from './release.ts'
import { letOthersWork, type Surveyor, type UndecodedGroup, type WaitingDevice } from './survey.ts'
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

/** All that is known of one name. */
export interface Shown {
  readonly waiting: WaitingDevice | undefined
  readonly undecoded: readonly UndecodedGroup[]
  readonly unclaimed: ListedTopic | undefined
  readonly choices: readonly Choice[]
  /** What the bridge that could read the topic finds in its last frame. */
  readonly preview:
    | { readonly readings: readonly Reading[]; readonly problems: readonly DecodeProblem[] }
    | undefined
}

/** How a topic is to be read; left out, as the bridge proposes that could read it. */
export interface Wish {
  readonly kind?: ChoiceKind | undefined
  readonly bridge?: string | undefined
  readonly source?: Readonly<Record<string, unknown>> | undefined
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
  /** Undefined where nothing is known of the name. */
  show(name: string): Promise<Shown | undefined>
  /** @throws ngsi-ld.bad-request-data, ngsi-ld.conflict with the settings, ngsi-ld.too-complex at a ceiling */
  accept(name: string, wish: Wish): Promise<Accepted>
  /** @throws as `accept` */
  ignore(name: string, kind: ChoiceKind | undefined): Promise<Ignored>
  /** Withdraws a decision; false where there is none. */
  forget(name: string, kind: ChoiceKind | undefined): Promise<boolean>
}

export interface DevicesPorts extends Surveyor {
  readonly door: Door
  readonly admission: Admission
  readonly channels: Pick<Channels, 'forget'>
  readonly choices: Choices
  readonly claims: Claims
  readonly quarantine: Quarantine
  readonly unclaimed: Unclaimed
  readonly release: Release
  readonly clock: Clock
  readonly log: Log
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

  /** A name with a slash or a wildcard is a topic, unless a device of that name waits. */
  async function kindOf(name: string, kind: ChoiceKind | undefined): Promise<ChoiceKind> {
    checkName(name)
    if (kind !== undefined) return kind
    const isTopic = unclaimed.get(name) !== undefined || choices.has('topic', name)
    const isDevice =
      choices.has('device', name) || (await ports.survey()).waiting.some(({ device }) => device === name)
    if (isTopic && isDevice)
      throw badRequestData(`${name} is a device and a topic; say which: "kind" is device or topic`)
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
  ): Choice => ({
    ...{ kind, name, decision, mapping },
    at: clock.now(),
  })

  async function acceptDevice(name: string): Promise<Accepted> {
    if (admission.settled(name) === 'ignored')
      throw conflict(`the settings ignore the device ${name}: take it out of provisioning.ignore`)
    await put([choiceOf('device', name, 'accepted')])
    return { kind: 'device', name, mapping: undefined, devices: [name], released: await release() }
  }

  async function acceptTopic(topic: string, wish: Wish): Promise<Accepted> {
    if (claims.isSettled(topic))
      throw conflict(`the settings say already how the topic ${topic} is read; change them there`)
    const mapped = claims.find(emptyFrame(topic, clock.now()))
    if (mapped !== undefined && wish.bridge === undefined && wish.source === undefined) {
      const done = { kind: 'topic', name: topic, mapping: { bridge: mapped.name }, devices: [] } as const
      return { ...done, released: await release() }
    }
    const frames = unclaimed.get(topic)?.frames ?? []
    const proposed = claims.propose(frames.at(-1) ?? emptyFrame(topic, clock.now()))
    const { name, mapping } = mappingOf(topic, wish, proposed)
    const claimant = usable(claims.claimantOf(name, mapping))
    // Whoever accepts a topic by its name accepts the devices that were seen there.
    const seen = new Set<string>()
    for (const frame of frames) {
      await letOthersWork()
      for (const { device } of claimant.decode(frame).readings)
        if (seen.size < limits.devicesListedMax.value) seen.add(device)
    }
    const decisions = await ports.decide(seen)
    const devices = [...seen].filter((device) => decisions.get(device) === 'waiting')
    await put([
      choiceOf('topic', name, 'accepted', mapping),
      ...devices.map((device) => choiceOf('device', device, 'accepted')),
    ])
    return { kind: 'topic', name, mapping, devices, released: await release() }
  }

  async function ignoreDevice(name: string): Promise<number> {
    if (admission.settled(name) === 'admitted')
      throw conflict(`the settings accept the device ${name}: take it out of provisioning`)
    await put([choiceOf('device', name, 'ignored')])
    ports.channels.forget(name)
    const held: { q: number; devices: ReadonlySet<string> }[] = []
    await ports.each(({ q, readings }) => {
      const devices = new Set(readings.map(({ device }) => device))
      if (devices.has(name)) held.push({ q, devices })
    })
    // The first device that is not ignored ends the look at a frame.
    const isDropped = (stage: Stage, devices: ReadonlySet<string>): boolean =>
      [...devices].every((device) => admission.of(stage, device) === 'ignored')
    const dropped = await door.commit((stage) => held.filter(({ devices }) => isDropped(stage, devices)))
    return drop(dropped.map(({ q }) => q))
  }

  async function ignoreTopic(filter: string): Promise<number> {
    if (claims.isSettled(filter))
      throw conflict(`the settings say how the topic ${filter} is read; change them there`)
    await put([choiceOf('topic', filter, 'ignored')])
    const gone = unclaimed.remove((topic) => matchesFilter(filter, topic))
    const held: number[] = []
    await ports.each(({ q, frame }) => {
      if (claims.isIgnored(frame.topic)) held.push(q)
    })
    return (await drop(held)) + gone.reduce((sum, { frames }) => sum + frames.length, 0)
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
        await letOthersWork()
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
        choices: [...choices.all('device'), ...choices.all('topic')].filter((choice) => choice.name === name),
      }
      const isKnown = shown.waiting || shown.unclaimed || shown.undecoded.length + shown.choices.length > 0
      return isKnown ? { ...shown, preview: previewOf(claims, shown.unclaimed) } : undefined
    },
    async accept(name, wish) {
      const kind = await kindOf(
        name,
        wish.bridge !== undefined || wish.source !== undefined ? 'topic' : wish.kind,
      )
      return kind === 'device' ? acceptDevice(name) : acceptTopic(name, wish)
    },
    async ignore(name, given) {
      const kind = await kindOf(name, given)
      const dropped = await (kind === 'device' ? ignoreDevice(name) : ignoreTopic(name))
      return { kind, name, dropped }
    },
    async forget(name, given) {
      const kind = await kindOf(name, given)
      if (!choices.has(kind, name)) return false
      await door.commit((stage) => choices.remove(stage, kind, name))
      log.info('intake.chosen', { kind, name, decision: 'none' })
      if (kind === 'topic') useTopics()
      else ports.channels.forget(name)
      return true
    },
  } satisfies Devices)
}

/** What is mapped: as the operator says, where that is nothing as the bridge proposes. */
function mappingOf(
  topic: string,
  { bridge, source }: Wish,
  proposed: BridgeProposal | undefined,
): { name: string; mapping: Mapping } {
  const chosen = bridge ?? proposed?.bridge
  if (chosen === undefined)
    throw badRequestData(`no bridge can read the last frame of ${topic}; name one in "bridge"`)
  const isAsProposed = proposed !== undefined && proposed.bridge === chosen
  const name = isAsProposed && source === undefined ? proposed.topic : topic
  const hasLevels = topic.includes('{')
  const base = isAsProposed && !hasLevels ? proposed.source : { fields: 'auto' }
  const mapping = { bridge: chosen, source: { ...base, ...source } }
  if (JSON.stringify(mapping).length > limits.choiceBytesMax.value)
    throw badRequestData(`the source is longer than ${limits.choiceBytesMax.value} characters`, 'source')
  return { name, mapping }
}

function usable(claimant: ReturnType<Claims['claimantOf']>): Claimant {
  if ('decode' in claimant) return claimant
  const [{ path, expected } = { path: '', expected: 'other settings' }] = claimant
  throw badRequestData(`expected ${expected}`, path === '' ? 'source' : path)
}

function previewOf(claims: Claims, topic: ListedTopic | undefined): Shown['preview'] {
  const frame = topic?.frames.at(-1)
  if (frame === undefined || topic?.proposal === undefined) return undefined
  const { bridge, source, topic: name } = topic.proposal
  const claimant = claims.claimantOf(name, { bridge, source })
  return 'decode' in claimant ? claimant.decode(frame) : undefined
}

/** Stands for the first frame of a topic that is mapped before it is published. */
const emptyFrame = (topic: string, receivedAt: number): Frame => ({
  ...{ topic, receivedAt },
  payload: Buffer.alloc(0),
  retained: false,
  transport: 'mqtt',
})

function checkName(name: string): void {
  const most = limits.choiceNameCharactersMax.value
  if (name.length === 0 || name.length > most || !name.isWellFormed())
    throw badRequestData(`the name of a device or topic must have 1 to ${most} characters`)
}

const conflict = (detail: string): GatewayError => new GatewayError('ngsi-ld.conflict', detail)
