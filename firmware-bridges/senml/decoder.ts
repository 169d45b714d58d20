/**
 * SenML, Sensor Measurement Lists (RFC 8428, with the secondary units of RFC 8798 and 9100), as JSON and as
 * CBOR. It is the only format without configuration: the payload contains names, units and times. On MQTT
 * below `senml/`, on HTTP by media type. Streams (SenSML), XML, EXI and fetch/patch packs are not supported.
 */
import { defineBridge, undecodable } from '#contract'
import { packOf } from './pack.ts'
import { resolvePack } from './resolve.ts'

const root = 'senml/'

export const senml = defineBridge({
  name: 'senml',
  version: '1.0.0',
  summary: 'SenML packs (RFC 8428), JSON and CBOR',
  topics: ['senml/#'],
  contentTypes: ['application/senml+json', 'application/senml+cbor'],
  format: 'application/senml+json',
  decode(frame) {
    const pack = packOf(frame)
    if (pack.reason !== undefined) return undecodable(pack.reason)
    const local = frame.topic.startsWith(root) ? frame.topic.slice(root.length) : ''
    return resolvePack(pack.value, frame, local)
  },
  propose(frame) {
    const pack = packOf(frame)
    if (pack.reason !== undefined || resolvePack(pack.value, frame, '').readings.length === 0)
      return undefined
    return { topic: frame.topic }
  },
})
