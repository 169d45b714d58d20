/**
 * Assembles the parts of the intake: the intake of frames, and the device lists and decisions for an
 * operator. Held frames that can be released at start are released before the first new frame.
 */
import type { Observer } from '#broker/entities/observer.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Bridge } from '#contract'
import type { Records } from '#store/tables/records.ts'
import { type ChannelsPorts, createChannels } from './channels.ts'
import { createChoices } from './choices.ts'
import { createClaims } from './claims.ts'
import { createDeviceAdmission } from './device-admission.ts'
import { createDeviceTopics } from './device-topics.ts'
import { createDevices, type Devices } from './devices.ts'
import { createIntake, type Intake, type IntakePorts } from './intake.ts'
import { createMappingPlan } from './mapping-plan.ts'
import { createQuarantine } from './quarantine.ts'
import { createRelease } from './release.ts'
import { createDeviceSurvey } from './survey.ts'
import { createUnclaimed } from './unclaimed.ts'

export interface IntakeParts {
  readonly intake: Intake
  readonly devices: Devices
}

export interface OpenIntakePorts extends ChannelsPorts, Pick<IntakePorts, 'clock' | 'metrics'> {
  readonly observer: Observer
  readonly records: Records
  readonly bridges: readonly Bridge<unknown>[]
  /** Ids of the gateway's own MQTT clients, which publish notifications. */
  readonly ownClients: ReadonlySet<string>
}

export async function openIntake(
  ports: OpenIntakePorts,
  { provisioning, bridges }: Pick<Settings, 'provisioning' | 'bridges'>,
): Promise<IntakeParts> {
  const choices = createChoices(ports.records)
  const claims = createClaims(ports.bridges, bridges)
  const channels = createChannels(ports, provisioning)
  const admission = createDeviceAdmission({ documents: ports.documents, choices }, provisioning)
  const quarantine = createQuarantine(ports)
  const unclaimed = createUnclaimed({
    log: ports.log,
    metrics: ports.metrics,
    monotonic: ports.clock.monotonic,
    readerOf: (frame) => claims.propose(frame)?.bridge,
  })
  const parts = { ...ports, choices, claims, channels, admission, quarantine, unclaimed }
  const intake = createIntake(parts)
  const release = createRelease({
    door: ports.door,
    admission,
    claims,
    quarantine,
    unclaimed,
    intake,
    log: ports.log,
  })
  const planMapping = createMappingPlan(parts)
  const otherTopicOf = createDeviceTopics(parts)
  const devices = createDevices({
    ...parts,
    ...createDeviceSurvey(parts),
    planMapping,
    otherTopicOf,
    release,
  })
  await release()
  return { intake, devices }
}
