/** Hostile bodies: wide, deep, large, and many entities at once. */
import { limits } from '#base/limits/limits.ts'
import { get, property, range, send } from './asking.ts'
import type { StallCase } from './campaign.ts'

const wide = (names: number, first = 0) =>
  Object.fromEntries(range(names, (i) => [`a${first + i}`, property(i)]))
/** Characters that remain beside an entity around them. */
const most = limits.bodyBytesMax.value - 200

export const shapes: readonly StallCase[] = [
  {
    name: 'attributes appended, 1,000 at a time, 24 times',
    prepare: (site) => send(site, 'POST', '/entities', { id: 'urn:x:wide', type: 'Wide' }),
    act: async (site) => {
      let last = ''
      for (let i = 0; i < 24; i++)
        last = await send(site, 'POST', '/entities/urn:x:wide/attrs', wide(1000, 1000 * i))
      return last
    },
  },
  {
    name: 'an entity of the most attributes, sysAttrs',
    act: (site) => get(site, '/entities/urn:x:wide?options=sysAttrs'),
  },
  {
    name: 'its list of attributes, wide pick',
    act: (site) => get(site, `/entities/urn:x:wide?pick=${range(600, (i) => `a${i}`).join(',')}`),
  },
  {
    name: 'nested arrays of the largest body',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":[${'[],'.repeat(Math.floor(most / 3))}[]]}}`,
      ),
  },
  {
    name: 'nested objects of 1 MB',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":[${'{"a":{}},'.repeat(110_000)}1]}}`,
      ),
  },
  {
    name: 'arrays 1,000,000 deep',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":${'['.repeat(1e6)}${']'.repeat(1e6)}}}`,
      ),
  },
  {
    name: 'a number of the largest body',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":${'1'.repeat(most)}}}`,
      ),
  },
  {
    name: 'a body of members',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N",${range(limits.bodyValuesMax.value - 10, (i) => `"a${i}":${'1'.repeat(30)}`).join(',')}}`,
      ),
  },
  {
    name: 'a batch of 10,000 entities',
    act: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(10_000, (i) => ({ id: `urn:x:batch:${i}`, type: 'Batch', n: property(i) })),
      ),
  },
  {
    name: 'a batch of 15 entities of 1 MB',
    act: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(15, (i) => ({ id: `urn:x:mega:${i}`, type: 'Mega', n: property('x'.repeat(1_000_000)) })),
      ),
  },
  { name: 'entities of 1 MB', act: (site) => get(site, '/entities?type=Mega&limit=1000') },
  {
    name: 'a batch of 10,000 deletes',
    act: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/delete',
        range(10_000, (i) => `urn:x:batch:${i}`),
      ),
  },
]
