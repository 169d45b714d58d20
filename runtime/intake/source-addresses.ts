/**
 * How the source of a frame is reached, as the entities tell it to everybody who reads them: by the listener it came in by,
 * or by the external broker that it was fetched from.
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
