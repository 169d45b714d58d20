/**
 * Computes the mapping that accepting a topic creates or changes: the operator's values, completed by the
 * proposal of a bridge that can read the newest held frame. Nothing is stored here.
 */

import { limits } from '#base/limits/limits.ts'
import type { GatewayError } from '#base/register/errors.ts'
import type { Frame } from '#contract'
import { badRequestData, conflict } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Choice, Choices, Mapping } from './choices.ts'
import type { BridgeProposal, Claimant, Claims } from './claims.ts'
import type { Unclaimed } from './unclaimed.ts'

/** How to read a topic. */
export interface MappingRequest {
  readonly bridge?: string | undefined
  readonly source?: Readonly<Record<string, unknown>> | undefined
}

export interface MappingPlan {
  /** The topic or pattern that is mapped; a recognized firmware has a pattern. */
  readonly name: string
  readonly mapping: Mapping
  readonly claimant: Claimant
  /** Held frames of the topic. */
  readonly frames: readonly Frame[]
  /** True when `name` already maps the topic and nothing changes. */
  readonly isUnchanged: boolean
  /** True when the operator named the device: by its name, by a path or by a level of a pattern. */
  readonly isDeviceNamed: boolean
}

export interface MappingPlanPorts {
  readonly claims: Claims
  readonly choices: Pick<Choices, 'all'>
  readonly unclaimed: Pick<Unclaimed, 'get'>
}

/** True when a name is a filter or pattern, not a single topic. */
export const isPattern = (name: string): boolean => /[+#{]/.test(name)

export type PlanMapping = ReturnType<typeof createMappingPlan>

export function createMappingPlan({ claims, choices, unclaimed }: MappingPlanPorts) {
  /** The choice that maps the topic now; for a pattern, only a choice with exactly this name. */
  function mappedBy(topic: string): Choice | undefined {
    const choice = isPattern(topic)
      ? choices.all('topic').find(({ name }) => name === topic)
      : claims.choiceOf(topic)
    return choice?.mapping === undefined ? undefined : choice
  }

  function changed(topic: string, request: MappingRequest, { name, mapping }: Choice): MappingPlan {
    const { bridge, source: before } = mapping!
    const isDeviceNamed = namesDevice(request)
    const { device: _, deviceName: __, ...others } = before ?? {}
    const source = { ...(isDeviceNamed ? others : before), ...request.source }
    // A device name for one topic must not apply to all topics of a pattern.
    const mapped = isDeviceNamed && isPattern(name) ? topic : name
    const isUnchanged = request.source === undefined
    return { ...planned(mapped, { bridge, source }), frames: [], isUnchanged, isDeviceNamed: true }
  }

  function planned(name: string, mapping: Mapping): Pick<MappingPlan, 'name' | 'mapping' | 'claimant'> {
    if (JSON.stringify(mapping).length > limits.choiceBytesMax.value)
      throw badRequestData(`the source must have at most ${limits.choiceBytesMax.value} characters`, 'source')
    return { name, mapping, claimant: usable(claims.claimantOf(name, mapping)) }
  }

  /** The proposal for the newest frame that a bridge can read. */
  function proposalOf(frames: readonly Frame[]): BridgeProposal | undefined {
    for (const frame of frames.toReversed()) {
      const proposal = claims.propose(frame)
      if (proposal !== undefined) return proposal
    }
    return undefined
  }

  function unreadable(topic: string, frames: readonly Frame[]): GatewayError {
    const ignoring = claims.choiceOf(topic)?.name
    if (ignoring !== undefined)
      return conflict(`the decision ${ignoring} ignores the topic ${topic}; withdraw it first`)
    const last = frames.at(-1)
    if (last === undefined)
      return badRequestData(
        `nothing was published on ${topic} since the gateway started; check the spelling, or set its "bridge" and "source.deviceName"`,
      )
    const [bridge] = claims.configurable
    const reader = bridge && claims.claimantOf(topic, { bridge, source: trial })
    const why = reader && 'decode' in reader ? reader.decode(last).problems[0]?.reason : undefined
    return badRequestData(
      `no bridge can read the last frame of ${topic}${why === undefined ? '' : `: ${why}`}; configure it with "bridge" and "source"`,
    )
  }

  /** @throws ngsi-ld.bad-request-data, ngsi-ld.conflict */
  return function planMapping(topic: string, request: MappingRequest): MappingPlan {
    assertUnsettled(claims, topic)
    const before = mappedBy(topic)
    if (before !== undefined && (request.bridge ?? before.mapping!.bridge) === before.mapping!.bridge)
      return changed(topic, request, before)
    if (isPattern(topic) && request.bridge === undefined && request.source === undefined)
      throw badRequestData(
        `${topic} is a pattern, so "bridge" is required; write {device} for the level with the device name, as in home/{device}/temperature`,
      )
    const frames = unclaimed.get(topic)?.frames ?? []
    const proposed = proposalOf(frames)
    const bridge = request.bridge ?? proposed?.bridge ?? (request.source && onlyOne(claims.configurable))
    if (bridge === undefined) throw unreadable(topic, frames)
    const isAsProposed = proposed?.bridge === bridge
    const isDeviceNamed = namesDevice(request) || isPattern(topic)
    const source = { ...(isAsProposed ? proposed.source : { fields: 'auto' }), ...request.source }
    const name = isAsProposed && !isDeviceNamed ? proposed.topic : topic
    return { ...planned(name, { bridge, source }), frames, isUnchanged: false, isDeviceNamed }
  }
}

/** @throws ngsi-ld.conflict when a bridge reads the topic regardless of choices */
export function assertUnsettled(claims: Pick<Claims, 'settledBy'>, topic: string): void {
  const reader = claims.settledBy(topic)
  if (reader === undefined) return
  throw conflict(
    reader.isBuiltIn
      ? `the bridge ${reader.bridge} reads the topic ${topic} without a mapping; accept or ignore its devices by their names`
      : `the settings already define how to read the topic ${topic}; change the settings`,
  )
}

const trial = { deviceName: 'device', fields: 'auto' }

const namesDevice = ({ source }: MappingRequest): boolean =>
  source?.['deviceName'] !== undefined || source?.['device'] !== undefined

const onlyOne = <T>(all: readonly T[]): T | undefined => (all.length === 1 ? all[0] : undefined)

function usable(claimant: ReturnType<Claims['claimantOf']>): Claimant {
  if ('decode' in claimant) return claimant
  const [{ path, expected } = { path: '', expected: 'other settings' }] = claimant
  throw badRequestData(`expected ${expected}`, path === '' ? 'source' : path)
}
