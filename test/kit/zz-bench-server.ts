import { systemClock } from '#base/clock.ts'
import { createLog } from '#base/log.ts'
import { createMetrics } from '#base/metrics.ts'
import { createMqttServer } from '#mqtt/server.ts'
import { createSessionRows } from '#store/sessions.ts'
import { openDoor, temporaryDatabase } from './door.ts'
const mode = process.argv[2]
const file = temporaryDatabase()
const opened = await openDoor(file.file, { lingerMs: 20 })
let n = 0
const server = await createMqttServer({
  door: opened.door,
  intake: { accept(frame) {
    if (mode === 'unclaimed') return undefined
    const value = frame.payload.length
    return { bytes: 200, decide(stage) { stage.observation(n++ % 100, frame.receivedAt, value, false) } }
  } },
  rows: createSessionRows(opened.database), authenticate: () => true, clock: systemClock,
  log: createLog({ level: 'info', clock: systemClock, write: () => {} }), metrics: createMetrics(),
}, { host: '127.0.0.1', port: 0 })
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`)
process.stdin.on('data', () => {
  const t = (process as any).threadCpuUsage(), p = process.cpuUsage()
  process.stdout.write(`${JSON.stringify({ main: t.user + t.system, all: p.user + p.system, rss: process.memoryUsage().rss / 1e6, mem: process.memoryUsage() })}\n`)
})
process.on('SIGTERM', () => { file.remove(); process.exit(0) })
