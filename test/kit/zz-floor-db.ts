import { Hono } from 'hono'
import { getRequestListener } from '@hono/node-server'
import http from 'node:http'
import { startHttpGateway } from '#test/kit/http-gateway.ts'
import { openReader } from '#store/database.ts'
import { createEntities } from '#store/entities.ts'
const kind = process.argv[2]
const gw = await startHttpGateway()
await gw.send('POST', '/ngsi-ld/v1/entities/', { id: 'urn:ngsi-ld:Sensor:1', type: 'Sensor', a: {type:'Property', value: 'x'.repeat(900)} })
const db = openReader(gw.dataFolder + '/selvedge.db')
const e = createEntities(db)
const text = e.byId('urn:ngsi-ld:Sensor:1')!.doc
const app = new Hono()
const q = db.prepare('SELECT doc FROM entity WHERE id = ?').pluck()
const b = db.prepare('SELECT 1').pluck()
if (kind==='dbread') app.get('/ngsi-ld/v1/entities/:id', (c)=>c.body(e.byId(c.req.param('id'))!.doc, 200, {'Content-Type':'application/json'}))
else if (kind==='dbthrow') app.get('/ngsi-ld/v1/entities/:id', (c)=>{e.byId(c.req.param('id'))!.doc; return c.body(text, 200, {'Content-Type':'application/json'})})
else if (kind==='pluck') app.get('/ngsi-ld/v1/entities/:id', (c)=>c.body(q.get(c.req.param('id')) as string, 200, {'Content-Type':'application/json'}))
else if (kind==='one') app.get('/ngsi-ld/v1/entities/:id', (c)=>{b.get(); return c.body(text, 200, {'Content-Type':'application/json'})})
else if (kind==='tx') { db.exec('BEGIN'); e.byId('urn:ngsi-ld:Sensor:1'); app.get('/ngsi-ld/v1/entities/:id', (c)=>c.body(e.byId(c.req.param('id'))!.doc, 200, {'Content-Type':'application/json'})) }
else if (kind==='turn') { const begin=db.prepare('BEGIN'), end=db.prepare('COMMIT'); let open=false; const close=()=>{ open=false; end.run() }; app.get('/ngsi-ld/v1/entities/:id', (c)=>{ if(!open){open=true; begin.run(); setImmediate(close)} return c.body(e.byId(c.req.param('id'))!.doc, 200, {'Content-Type':'application/json'})}) }
else app.get('/ngsi-ld/v1/entities/:id', (c)=>c.body(text, 200, {'Content-Type':'application/json'}))
http.createServer(getRequestListener(app.fetch)).listen(0,'127.0.0.1',function(){console.log((this.address() as any).port)})
