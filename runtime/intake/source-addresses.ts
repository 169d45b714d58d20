/**
 * The address of a frame's source, as written to the entities: the listener that received the frame, or the
 * external broker that it was fetched from.
 */
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Frame } from '#contract'
import type { SourceAddress } from './site-model.ts'

export function sourceAddresses({
  host,
  http,
  mqtt,
}: Pick<Settings, 'host' | 'http' | 'mqtt'>): (frame: Frame, format: string) => SourceAddress {
  return (frame, format) => {
    if (frame.transport === 'http') {
      return { endpoint: `http://${host}:${http.port}`, interfaceType: 'HTTP', topic: frame.topic, format }
    }
    const endpoint = frame.transport === 'mqtt' ? `mqtt://${host}:${mqtt.port}` : (frame.source ?? 'mqtt')
    return { endpoint, interfaceType: 'MQTT', topic: frame.topic, format }
  }
}
