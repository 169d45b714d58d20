/** The share of the file descriptors that client connections may use. */
import { expect, it } from 'vitest'
import { connectionLimits, descriptorLimit } from './descriptors.ts'

it.each([
  [Number.POSITIVE_INFINITY, 1000, 2000],
  [8192, 1000, 2000],
  [1024, 213, 426],
  [256, 42, 85],
  [4, 1, 1],
])('allows, with %s descriptors, %s HTTP and %s MQTT connections', (descriptors, http, mqtt) => {
  expect(connectionLimits(descriptors)).toEqual({ http, mqtt })
})

it('reads the descriptor limit of this process', () => {
  expect(descriptorLimit()).toBeGreaterThan(0)
})
