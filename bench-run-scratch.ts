import { openReader } from '#store/database.ts'
import { createEntities } from '#store/entities.ts'
import { createEntityQuery } from '#store/entity-query.ts'
import { parseQuery } from '#ngsi-ld/query-parse.ts'
import { parseGeoQuery } from '#ngsi-ld/geo.ts'
import { compilePattern } from '#ngsi-ld/pattern.ts'
const db = openReader('/tmp/bench/t.db')
const entities = createEntities(db)
const names = new Map((db.prepare('select text, i from name').raw().all() as [string, number][]))
const same = (t: string) => t
const query = createEntityQuery({ database: db, entities, nameOf: (t) => names.get(t) })
let seed = 7
const rnd = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff
const bench = (label: string, n: number, f: (k: number) => unknown) => {
  for (let k = 0; k < Math.min(n, 20); k++) f(k)
  const t: number[] = []
  let last: unknown
  for (let k = 0; k < n; k++) { const s = performance.now(); last = f(k); t.push(performance.now() - s) }
  const c0 = process.threadCpuUsage(); for (let k = 0; k < n; k++) f(k); const c1 = process.threadCpuUsage(c0); const cpu = ((c1.user + c1.system) / n).toFixed(0)
  t.sort((a, b) => a - b)
  const q = (p: number) => (t[Math.min(t.length - 1, Math.floor(p * t.length))]! * 1000).toFixed(0)
  console.log(label.padEnd(46), `cpu ${cpu} µs  p50 ${q(0.5)} µs  p99 ${q(0.99)} µs  max ${q(1)}`, JSON.stringify(last))
}
const sel = (name: string) => ({ kind: 'type' as const, name })
const page = (s: any, limit: number, offset = 0) => { const r = query.page(s, { limit, offset }); let n = 0; for (const row of r.rows) n += row.doc.length; return [r.rows.length, r.more] }
bench('get by id', 3000, () => entities.byId(`urn:ngsi-ld:Sensor:device-${Math.floor(rnd() * 100000)}:temperature`)?.rid)
bench('type page 20', 2000, () => page({ selection: sel('Sensor') }, 20))
bench('type page 20, random offset', 300, () => page({ selection: sel('Sensor') }, 20, Math.floor(rnd() * 99000)))
const qrange = () => { const v = rnd() * 98; return parseQuery(`temperature==${v.toFixed(3)}..${(v + 1).toFixed(3)}`, same) }
bench('q range 1000 hits, limit 100', 1000, () => page({ q: qrange() }, 100))
bench('type + q range 1000 hits, limit 100', 1000, () => page({ selection: sel('Sensor'), q: qrange() }, 100))
bench('q eq (100 hits), limit 100', 1000, () => page({ q: parseQuery(`https://w3id.org/iot/qoi#min==${Math.floor(rnd() * 1000)}`, same) }, 100))
bench('type + relationship eq (50 hits)', 1000, () => page({ selection: sel('Sensor'), q: parseQuery(`partOf=="urn:ngsi-ld:Platform:${Math.floor(rnd() * 2000)}"`, same) }, 100))
bench('q two ranges (1000 x 30000), limit 100', 500, () => page({ q: parseQuery(`${'temperature'}==${(rnd() * 98).toFixed(3)}..99;humidity>70`.replace(/==(.*)\.\.99/, (_, v) => `==${v}..${(Number(v) + 1).toFixed(3)}`), same) }, 100))
const near = (m: number) => parseGeoQuery({ georel: `near;maxDistance==${m}`, geometry: 'Point', coordinates: [10.2 + rnd() * 0.6, 50.2 + rnd() * 0.6] }, same)!
bench('near ~1000 hits, limit 100', 1000, () => page({ geo: near(5030) }, 100))
bench('type + near ~1000 hits, limit 100', 1000, () => page({ selection: sel('Sensor'), geo: near(5030) }, 100))
bench('near count ~1000', 300, () => query.count({ geo: near(5030) }))
bench('q range unselective (50 %), limit 100', 300, () => page({ selection: sel('Sensor'), q: parseQuery(`temperature>${(40 + rnd() * 20).toFixed(2)}`, same) }, 100))
bench('same, offset 20000', 30, () => page({ selection: sel('Sensor'), q: parseQuery(`temperature>${(40 + rnd() * 20).toFixed(2)}`, same) }, 100, 20000))
bench('same, count', 30, () => query.count({ selection: sel('Sensor'), q: parseQuery(`temperature>${(40 + rnd() * 20).toFixed(2)}`, same) }))
bench('count type', 50, () => query.count({ selection: sel('Sensor') }))
bench('Rare type + unselective range, limit 100', 300, () => page({ selection: sel('Rare'), q: parseQuery(`temperature>${(40 + rnd() * 20).toFixed(2)}`, same) }, 100))
bench('two unselective ranges, few common', 20, () => page({ q: parseQuery('temperature<20;humidity<20;https://w3id.org/iot/qoi#min<100', same) }, 100))
bench('pattern on name, 200 hits', 20, () => page({ q: parseQuery('name~=room 77$', same) }, 100))
bench('anchored pattern on name', 200, () => page({ q: parseQuery('name~="^Sensor number 77"', same) }, 100))
bench('idPattern prefix', 200, () => page({ idPattern: compilePattern('^urn:ngsi-ld:Sensor:device-77.*5:') }, 100))
bench('type A or B page 20', 500, () => page({ selection: { kind: 'or', parts: [sel('Sensor'), sel('Rare')] } }, 20))
bench('q!= unselective', 100, () => page({ q: parseQuery('temperature!=5', same) }, 100))
bench('sub-attribute path over everything, 0 hits', 3, () => page({ q: parseQuery('name.description=="y"', same) }, 100))
console.log(process.memoryUsage().rss / 1e6)
