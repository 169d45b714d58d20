/** Parameters of requests for a virtual sensor. */
import { describe, expect, it } from 'vitest'
import { replacementRequest } from './parameters.ts'

describe('parameters', () => {
  it('have the defaults of the specification', () => {
    expect(replacementRequest({ sensorID: 'urn:ngsi-ld:Sensor:a:t' })).toEqual({
      sensorId: 'urn:ngsi-ld:Sensor:a:t',
      maxDistance: 20_000,
      onlySameObservations: true,
      limitSourceSensors: 8,
      updateInterval: 300,
    })
  })
})
