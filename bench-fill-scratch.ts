import { existsSync, rmSync } from 'node:fs'
import { migrate, openWriter } from '#store/database.ts'
import { entityWrites } from '#store/entities.ts'
import { indexRows } from '#store/entity-index.ts'
const file = '/tmp/bench/t.db'
for (const x of ['', '-wal', '-shm']) rmSync(file + x, { force: true })
migrate(file)
const db = openWriter(file, 'OFF')
const names = new Map<string, number>()
const st: Record<string, any> = {}
const w = (n: string, ...p: any[]) => (st[n] ??= db.prepare((entityWrites as any)[n])).run(...p)
const ins = db.prepare('INSERT INTO name (i, text) VALUES (?, ?)')
const intern = (t: string) => { let i = names.get(t); if (!i) { i = names.size + 1; names.set(t, i); ins.run(i, t) } return i }
let seed = 1
const rnd = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff
let place = 0
const N = 100_000
for (let base = 0; base < N; base += 1000) db.transaction(() => {
  for (let k = base; k < base + 1000; k++) {
    const rid = k + 1
    const x = 10 + rnd() * 1, y = 50 + rnd() * 1
    const e: any = {
      id: `urn:ngsi-ld:Sensor:device-${k}:temperature`, type: k % 100 === 0 ? 'Rare' : 'Sensor',
      temperature: { type: 'Property', value: Math.round(rnd() * 100000) / 1000, unitCode: 'CEL', observedAt: '2024-05-01T12:00:00Z' },
      humidity: { type: 'Property', value: Math.round(rnd() * 1000) / 10, unitCode: 'P1', observedAt: '2024-05-01T12:00:00Z' },
      'https://w3id.org/iot/qoi#min': { type: 'Property', value: k % 1000 },
      name: { type: 'Property', value: `Sensor number ${k} in room ${k % 500}` , description: { type: 'Property', value: 'x'.repeat(150) } },
      partOf: { type: 'Relationship', object: `urn:ngsi-ld:Platform:${k % 2000}` },
      location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [x, y] } },
    }
    w('entity.insert', rid, e.id, rid, 1, 1, JSON.stringify({ temperature: [1, 1], humidity: [1, 1], name: [1, 1], partOf: [1, 1], location: [1, 1] }), JSON.stringify(e))
    const r = indexRows(e)
    for (const t of r.types) w('type.insert', intern(t), rid)
    for (const n of r.attributes) w('attribute.insert', intern(n), rid)
    for (const [n, kind, v] of r.scalars) w('scalar.insert', intern(n), kind, v, rid)
    for (const p of r.places) { const i = ++place; w('place.insert', i, p.box.x0, p.box.x1, p.box.y0, p.box.y1, rid, intern(p.name), p.lon ?? null, p.lat ?? null); w('place.note', rid, intern(p.name), i) }
  }
})()
db.pragma('wal_checkpoint(TRUNCATE)')
console.log(db.prepare('select length(doc) l from entity where rid=5').get(), db.pragma('page_count', { simple: true }))
db.close()
