/**
 * The text that the demo prints after its start: addresses and examples to try.
 */
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { DemoOptions } from './demo-options.ts'

export interface DemoAddresses {
  readonly httpUrl: string
  readonly mqttPort: number
  /** URL of GraphQL and its IDE. */
  readonly searchUrl: string
}

export function invitation({ httpUrl, mqttPort, searchUrl }: DemoAddresses, options: DemoOptions): string {
  const entities = `${httpUrl}/ngsi-ld/v1/entities`
  const observations = `${entities}?type=${shell(iotStream.StreamObservation)}`
  const near = 'georel=near;maxDistance==300&geometry=Point&coordinates=[8.0012,52.0007]'
  const indexed = `${httpUrl}/indexing/ngsi-ld/v1/entities?type=${shell(iotStream.IotStream)}`
  const history = `${httpUrl}/ngsi-ld/v1/temporal/entities/urn:ngsi-ld:StreamObservation:greenhouse-1:temperature?lastN=10&options=temporalValues`
  const ofSimulated = [
    ['devices near the greenhouse', `${entities}?type=${shell(sosa.Platform)}&${near}`],
    ['the history of a sensor', history],
    ['streams near the greenhouse', `${indexed}&${near}`],
  ] as const
  const examples = [
    ['all devices', `${entities}?type=${shell(sosa.Platform)}&options=keyValues`],
    ['the newest values', `${observations}&attrs=${shell(sosa.hasSimpleResult)}`],
    ...(options.data === undefined ? ofSimulated : []),
  ] as const
  return [
    '',
    `HTTP  ${httpUrl}/ngsi-ld/v1`,
    `MQTT  mqtt://127.0.0.1:${mqttPort}`,
    `GraphQL, in a browser  ${searchUrl}/`,
    ...(options.keep === undefined ? [] : [`Data  ${options.keep}`]),
    '',
    'Try in another terminal:',
    ...examples.map(([what, url]) => `  # ${what}\n  curl -g '${url}'`),
    `  # a sensor of your own\n  mosquitto_pub -p ${mqttPort} -q 1 -t senml/my-device -m '[{"bn":"my-device:","n":"temperature","u":"Cel","v":21.5}]'`,
    '',
    ...(options.data === undefined
      ? [
          'Watch for the lines "site: STUCK SENSOR" and, 5 seconds after the start and every two minutes,',
          '"site: OUTAGE BEGINS" and "site: OUTAGE ENDS". A sensor sticks 20 seconds after the start, and every',
          'five minutes: "gateway: FAULT" at its 8th equal value (16 seconds), then a "VIRTUAL SENSOR" and its',
          'estimate. It is well again after 40 seconds: "FAULT OVER", and half a minute later its replacement',
          'is withdrawn.',
          '',
        ]
      : []),
    'Press Ctrl-C to stop.',
    '',
    '',
  ].join('\n')
}

/** An IRI within a query; the fragment mark must be escaped. */
function shell(iri: string): string {
  return iri.replaceAll('#', '%23')
}
