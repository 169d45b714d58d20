/** Queries of many entities, and large geometries. */
import { get, ld, q, range, send } from './asking.ts'
import type { StallCase } from './campaign.ts'

const polygon = (positions: number) => {
  const at = (i: number) => (6.28 * i) / positions
  const ring = range(positions - 1, (i) =>
    [10 * Math.cos(at(i)), 10 * Math.sin(at(i))].map((x) => Math.round(1000 * x) / 1000),
  )
  return [[...ring, ring[0]]]
}
export const queries: readonly StallCase[] = [
  { name: 'orderBy over all', act: (site) => get(site, '/entities?type=Plain&orderBy=n&limit=1000') },
  {
    name: 'orderBy over all by a text',
    act: (site) => get(site, '/entities?type=Plain&orderBy=s&collation=de'),
  },
  { name: 'count of all', act: (site) => get(site, '/entities?type=Plain&count=true&limit=0') },
  {
    name: 'a page far behind',
    act: (site) => get(site, `/entities?type=Plain&offset=${site.entities - 1000}&limit=1000`),
  },
  {
    name: 'q of 128 terms, count',
    act: (site) =>
      get(site, `/entities?type=Plain&count=true&${q(range(128, (i) => `n==${i * 7}`).join('|'))}`),
  },
  {
    name: 'q that no index decides, count',
    act: (site) => get(site, `/entities?type=Plain&count=true&${q('n.x!=5')}`),
  },
  {
    name: 'q of 8 kB',
    act: (site) =>
      get(site, `/entities?type=Plain&count=true&${q(`n==${range(1300, (i) => i * 3).join(',')}`)}`),
  },
  {
    name: 'scopeQ and ids',
    act: (site) =>
      get(
        site,
        `/entities?type=Plain&id=${range(400, (i) => `urn:x:plain:${i}`).join(',')}&limit=1000&options=sysAttrs`,
      ),
  },
  {
    name: 'a polygon of 1,000 positions over 10,000 places',
    prepare: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(5000, (i) => ({
          id: `urn:x:place:${i}`,
          type: 'Place',
          location: {
            type: 'GeoProperty',
            value: { type: 'Point', coordinates: [(i % 200) / 10 - 10, i / 300 - 10] },
          },
        })),
      ),
    act: (site) =>
      get(
        site,
        `/entities?type=Place&count=true&georel=within&geometry=Polygon&coordinates=${encodeURIComponent(JSON.stringify(polygon(400)))}`,
      ),
  },
  {
    name: 'stored polygons of 5,000 positions, intersects',
    prepare: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(40, (i) => ({
          id: `urn:x:area:${i}`,
          type: 'Area',
          location: { type: 'GeoProperty', value: { type: 'Polygon', coordinates: polygon(5000) } },
        })),
      ),
    act: (site) =>
      send(site, 'POST', '/entityOperations/query', {
        type: 'Query',
        entities: [{ type: 'Area' }],
        geoQ: { georel: 'intersects', geometry: 'Polygon', coordinates: polygon(1000) },
      }),
  },
  { name: 'types with details', act: (site) => get(site, '/types?details=true') },
  { name: 'attributes with details', act: (site) => get(site, '/attributes?details=true') },
  { name: 'an entity map of all', act: (site) => get(site, '/entityMaps?type=Plain') },
  {
    name: 'a snapshot of 10,000',
    act: (site) =>
      send(site, 'POST', '/snapshots', {
        type: 'Snapshot',
        snapshotQueries: [{ type: 'Query', entities: [{ type: 'Plain' }] }],
      }),
  },
  {
    name: 'a purge that means nobody',
    act: async ({ http }) => (await http.ask('DELETE', `${ld}/entities?type=Plain&${q('n.x!=5')}`)).status,
  },
]
