/** The share of the file descriptors that clients may take. */
import { expect, it } from 'vitest'
import { connectionLimits, descriptorLimit } from './descriptors.ts'

it.each([
  [Number.POSITIVE_INFINITY, 1000, 2000],
  [8192, 1000, 2000],
  [1024, 213, 426],
  [256, 42, 85],
  [4, 1, 1],
])('of %s descriptors HTTP clients may take %s and MQTT clients %s', (descriptors, http, mqtt) => {
  expect(connectionLimits(descriptors)).toEqual({ http, mqtt })
})

it('the limit of this process is known', () => {
  expect(descriptorLimit()).toBeGreaterThan(0)
})
