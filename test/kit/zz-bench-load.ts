import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { connect } from 'node:net'
import { generate } from 'mqtt-packet'
const [,, mode = 'claimed', pubsS = '100', flightS = '16', qosS = '1', secondsS = '5', extra = ''] = process.argv
const pubs = Number(pubsS), flight = Number(flightS), qos = Number(qosS) as 0|1, seconds = Number(secondsS)
const args = ['-c', '0', process.execPath, ...(extra ? extra.split(' ') : []), new URL('./zz-bench-server.ts', import.meta.url).pathname, mode]
const child = spawn('taskset', args, { stdio: ['pipe', 'pipe', 'inherit'] })
const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
const say = async () => JSON.parse((await lines.next()).value)
const { port } = await say(); setTimeout(async () => console.log('idle', JSON.stringify((await ask()).mem)), 10)
const ask = async () => { child.stdin!.write('x'); return await say() }
let acked = 0
const payload = JSON.stringify([{ bn: 'urn:dev:ow:10e2073a01080063', n: 'temperature', u: 'Cel', v: 21.53, t: 1795180685.5 }])
for (let i = 0; i < pubs; i++) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const one = generate({ cmd: 'publish', topic: `senml/dev${i}`, payload, qos, retain: false, dup: false, messageId: 1 } as never)
  const batches = [...Array(flight + 1).keys()].map(n => Buffer.concat(Array.from({length: n}, () => one)))
  let ready = false
  socket.on('data', (d) => {
    if (!ready) { ready = true; socket.write(batches[flight]!); return }
    const n = d.length >> 2
    acked += n
    let rest = n
    while (rest > 0) { const k = Math.min(rest, flight); socket.write(batches[k]!); rest -= k }
  })
  socket.write(generate({ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, keepalive: 60, clientId: `d${i}` } as never))
}
const pause = (ms: number) => new Promise(r => setTimeout(r, ms))
await pause(2000)
for (let round = 0; round < 3; round++) {
  const a = await ask(), n0 = acked, t0 = performance.now()
  await pause(seconds * 1000 / 3)
  const b = await ask(), n = acked - n0, s = (performance.now() - t0) / 1000
  console.log(JSON.stringify(b.mem)); console.log(`${mode} ${pubs}x${flight}: ${Math.round(n / s)}/s  main ${((b.main - a.main) / n).toFixed(2)} us  all ${((b.all - a.all) / n).toFixed(2)} us  rss ${Math.round(b.rss)} MB`)
}
child.kill('SIGTERM')
process.exit(0)
