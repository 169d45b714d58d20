/**
 * Finds the topics that a device is read from, using its entities, its held frames and the mappings. This
 * prevents accepting a topic from merging two devices with one name. Topics with equal levels up to the name
 * belong to one device: `tele/cellar/SENSOR` and `tele/cellar/STATE`, but not `attic/cellar/SENSOR`.
 */

import type { Stage } from '#broker/commit/stage.ts'
import type { DocumentDrafts } from '#broker/state/document-drafts.ts'
import { iotStream, selvedgeTopic, sosa } from '#contract/vocabulary.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { Choices } from './choices.ts'
import type { Claims } from './claims.ts'
import { siteId } from './site-ids.ts'
import type { WaitingDevice } from './survey.ts'

export interface DeviceTopicsPorts {
  readonly documents: Pick<DocumentDrafts, 'find'>
  readonly choices: Pick<Choices, 'all'>
  readonly claims: Pick<Claims, 'settledBy' | 'choiceOf'>
}

export type OtherTopicOf = ReturnType<typeof createDeviceTopics>

/** Number of sensors of a device that are checked. */
const sensorsMax = 256

export function createDeviceTopics({ documents, choices, claims }: DeviceTopicsPorts) {
  /** Topics on which the streams of the device were first seen. */
  function provisionedFrom(stage: Stage, device: string): string[] {
    const find = (id: string): Entity | undefined => documents.find(stage, id)?.entity
    const sensors = targetsOf(find(siteId('Platform', device)), sosa.hosts).slice(0, sensorsMax)
    const streams = sensors.map((id) => find(id.replace(/^urn:ngsi-ld:Sensor:/, 'urn:ngsi-ld:IotStream:')))
    const services = new Set(streams.flatMap((stream) => targetsOf(stream, iotStream.providedBy)))
    return [...services].flatMap((id) => texts(find(id), selvedgeTopic, 'value'))
  }

  /** Topics that a mapping assigns to the device by name. */
  const mappedTo = (device: string): string[] =>
    choices
      .all('topic')
      .flatMap(({ name, mapping }) => (mapping?.source?.['deviceName'] === device ? [name] : []))

  const isRead = (topic: string): boolean =>
    claims.settledBy(topic) !== undefined || claims.choiceOf(topic)?.mapping !== undefined

  /** Another topic that the device is read from; undefined when `topic` belongs to the same device. */
  return function otherTopicOf(
    stage: Stage,
    { device, topic, waiting }: { device: string; topic: string; waiting: readonly WaitingDevice[] },
  ): string | undefined {
    const held = waiting.flatMap((one) => (one.device === device ? [one.topic] : []))
    const used = [...provisionedFrom(stage, device), ...held, ...mappedTo(device)].filter(isRead)
    const origin = originOf(topic, device)
    return used.some((one) => originOf(one, device) === origin) ? undefined : used[0]
  }
}

/** The levels of a topic up to the one that equals the device name; all levels if none does. */
function originOf(topic: string, device: string): string {
  const levels = topic.split('/')
  const at = levels.lastIndexOf(device)
  return (at < 0 ? levels : levels.slice(0, at + 1)).join('/')
}

const targetsOf = (entity: Entity | undefined, name: string): string[] => texts(entity, name, 'object')

const texts = (entity: Entity | undefined, name: string, member: keyof AttributeInstance): string[] =>
  entity === undefined
    ? []
    : instancesOf(entity, name)
        .flatMap((instance) => instance[member])
        .filter((one) => typeof one === 'string')
