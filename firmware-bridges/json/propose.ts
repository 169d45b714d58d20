/**
 * Proposes a source for a frame whose topic is not mapped: the topic pattern of recognized firmware, else the
 * exact topic, with the device named by its levels.
 */
import type { Decoded, Frame, Proposal } from '#contract'

interface Usual {
  /** Levels of the topic; undefined matches any level, a last '#' all levels that follow. */
  readonly levels: readonly (string | undefined)[]
  readonly topic: string
}

/** Topics of the firmware that conventions.ts recognizes. */
const usualTopics: readonly Usual[] = [
  { levels: ['tele', undefined, 'SENSOR'], topic: 'tele/{device}/SENSOR' },
  { levels: ['tele', undefined, 'STATE'], topic: 'tele/{device}/STATE' },
  { levels: ['shellies', undefined, '#'], topic: 'shellies/{device}/#' },
  { levels: [undefined, 'events', 'rpc'], topic: '{device}/events/rpc' },
  { levels: ['zigbee2mqtt', undefined], topic: 'zigbee2mqtt/{device}' },
  { levels: ['zigbee2mqtt', undefined, 'availability'], topic: 'zigbee2mqtt/{device}/availability' },
  { levels: [undefined, 'sensor', undefined, 'state'], topic: '{device}/sensor/{field}/state' },
  { levels: [undefined, 'binary_sensor', undefined, 'state'], topic: '{device}/binary_sensor/{field}/state' },
  { levels: ['v3', undefined, 'devices', undefined, 'up'], topic: 'v3/+/devices/{device}/up' },
]

/** Last levels that describe the kind of message, not the device. */
const plainWords =
  /^(?:state|status|telemetry|sensors?|data|values?|json|up|measurements?|readings?|attributes)$/i

/** @param decode decodes the frame with a source */
export function proposeSource(frame: Frame, decode: (source: object) => Decoded): Proposal | undefined {
  const levels = frame.topic.split('/')
  const usual = usualTopics.find((one) => isLike(one, levels))
  if (usual !== undefined) {
    const proposal = { topic: usual.topic, source: { fields: 'auto' } }
    if (isReadable(decode({ ...proposal.source, topic: usual.topic }))) return proposal
  }
  const filled = levels.filter((level) => level !== '')
  const end = filled.at(-1)
  if (end === undefined) return undefined
  const decoded = decode({ topic: frame.topic, deviceName: end, fields: 'auto' })
  if (!isReadable(decoded)) return undefined
  const { readings } = decoded
  // The last level names the quantity if the payload is one value, or the kind of message.
  const isOneValue =
    readings.length === 0 ? isWord(frame.payload) : readings.length === 1 && readings[0]!.field === end
  const deviceName = filled.length > 1 && (isOneValue || plainWords.test(end)) ? filled.at(-2)! : end
  return { topic: frame.topic, source: { deviceName, fields: 'auto' } }
}

/** A first frame that contains only `nan` counts as readable. */
const isReadable = ({ readings, problems, skipped = 0 }: Decoded): boolean =>
  readings.length > 0 || (skipped > 0 && problems.length === 0)

const isWord = (payload: Uint8Array): boolean =>
  /^\s*[\w/.-]+\s*$/.test(Buffer.from(payload).toString('latin1'))

function isLike({ levels: wanted }: Usual, levels: readonly string[]): boolean {
  const hasTail = wanted.at(-1) === '#'
  const length = hasTail ? wanted.length - 1 : wanted.length
  if (hasTail ? levels.length <= length : levels.length !== length) return false
  return levels.every(
    (level, at) => at >= length || (wanted[at] === undefined ? level !== '' : level === wanted[at]),
  )
}
