/** Ids contain the hardware id unchanged, are URIs, and differ for different names. */
import { expect, it } from 'vitest'
import { isUri } from '#ngsi-ld/values/names.ts'
import { siteId, siteIds } from './site-ids.ts'

it('keeps hardware ids verbatim', () => {
  const device = 'urn:dev:mac:0024befffe804ff1'
  expect(siteIds({ device, field: 'temp', topic: 'senml/demo' })).toEqual({
    platform: `urn:ngsi-ld:Platform:${device}`,
    sensor: `urn:ngsi-ld:Sensor:${device}:temp`,
    stream: `urn:ngsi-ld:IotStream:${device}:temp`,
    property: `urn:ngsi-ld:ObservableProperty:${device}:temp`,
    observation: `urn:ngsi-ld:StreamObservation:${device}:temp`,
    service: `urn:ngsi-ld:Service:${device}:senml/demo`,
  })
  expect(siteId('Platform', "2001:db8::2/a_b-c.d~!$&'()*+,;=@")).toBe(
    "urn:ngsi-ld:Platform:2001:db8::2/a_b-c.d~!$&'()*+,;=@",
  )
})

it('shares a property by its label', () => {
  const place = { device: 'd', field: 'Temp', topic: 't', sharedLabel: 'air temperature' }
  expect(siteIds(place).property).toBe('urn:ngsi-ld:ObservableProperty:air%20temperature')
})

it('encodes characters that a URI cannot contain', () => {
  expect(siteId('Sensor', 'Küche 1', 'Temp [°C]#?')).toBe(
    'urn:ngsi-ld:Sensor:K%C3%BCche%201:Temp%20%5B%C2%B0C%5D%23%3F',
  )
  const texts = ['😀', '\ud800', '\0', '"<>\\^`{|}', '\u2028']
  expect(texts.filter((text) => !isUri(siteId('Sensor', text)))).toEqual([])
})

it('distinguishes an encoded name from one that looks encoded', () => {
  expect(siteId('Sensor', 'a b')).not.toBe(siteId('Sensor', 'a%20b'))
})
