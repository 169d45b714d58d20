/**
 * Notifications over MQTT (GS CIM 009, clause 7) against a real Mosquitto and the gateway's own broker: every
 * quality of service, both versions, users, and failures of a broker that is absent, refuses or cannot be
 * trusted.
 */
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { promisify } from 'node:util'
import { connectAsync } from 'mqtt'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import { createPublisher, type Publication } from '#mqtt/notify/publisher.ts'
import { certificate, key } from '#test/kit/certificate.ts'
import { temporaryDatabase } from '#test/kit/door.ts'
import { createMosquitto } from '#test/kit/mosquitto.ts'
import { openBroker } from '#test/kit/mqtt.ts'
import type { PeerServer } from '#test/kit/peer-server.ts'
import { findPeer } from '#test/kit/peer-table.ts'
import { describePeer } from '#test/kit/peers.ts'

const endpoint = createPublisher(systemClock, { allowsLoopback: true })
afterAll(() => endpoint.close())

const request = (uri: string, wishes: Partial<Publication['mqtt']> = {}): Publication => ({
  uri,
  body: '{"metadata":{},"body":{}}',
  timeoutMs: 2000,
  mqtt: { version: undefined, qos: 0, ...wishes },
})

describePeer('mosquitto', 'an MQTT notification to Mosquitto', (path) => {
  let mosquitto: PeerServer
  beforeEach(async () => {
    mosquitto = await createMosquitto(path)
    await mosquitto.start()
  })
  afterEach(() => mosquitto.remove())

  async function listen(): Promise<{ lines: string[]; end(): Promise<void> }> {
    const lines: string[] = []
    const client = await connectAsync(`mqtt://127.0.0.1:${mosquitto.port}`)
    client.on('message', (topic, payload, { qos }) => lines.push(`${topic} ${qos} ${payload.toString()}`))
    await client.subscribeAsync('#', { qos: 2 })
    return { lines, end: () => client.endAsync() }
  }

  it("arrives over TLS if the settings name the broker's certificate authority", async () => {
    const folder = mkdtempSync(join(tmpdir(), 'selvedge-tls-'))
    const [certfile, keyfile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    writeFileSync(certfile, certificate)
    writeFileSync(keyfile, key)
    const secure = await createMosquitto(path, [`certfile ${certfile}`, `keyfile ${keyfile}`])
    await secure.start()
    const uri = `mqtts://127.0.0.1:${secure.port}`
    const trusting = createPublisher(systemClock, { allowsLoopback: true, ca: [certificate] })
    const client = await connectAsync(uri, { ca: certificate })
    await client.subscribeAsync('site/#')
    const topic = new Promise((resolve) => client.once('message', resolve))
    expect(await endpoint.send(request(`${uri}/site/a`))).toMatchObject({ ok: false, kind: 'tls' })
    expect(await trusting.send(request(`${uri}/site/b`, { qos: 1 }))).toMatchObject({ ok: true })
    expect(await topic).toBe('site/b')
    trusting.close()
    await client.endAsync()
    await secure.remove()
    rmSync(folder, { recursive: true })
  })

  it.each([
    [0, undefined],
    [1, undefined],
    [2, undefined],
    [0, 4],
    [1, 4],
    [2, 5],
  ] as const)('arrives with QoS %i and version %s', async (qos, version) => {
    const listener = await listen()
    const wishes = { qos, version }
    const uri = `mqtt://127.0.0.1:${mosquitto.port}/site/a%20b`
    for (let i = 0; i < 3; i++) expect(await endpoint.send(request(uri, wishes))).toMatchObject({ ok: true })
    await expect.poll(() => listener.lines.length).toBe(3)
    expect(listener.lines[0]).toBe(`site/a b ${qos} {"metadata":{},"body":{}}`)
    await listener.end()
  })

  it('fails while the broker is stopped, and arrives when it is back', async () => {
    const uri = `mqtt://127.0.0.1:${mosquitto.port}/t`
    expect(await endpoint.send(request(uri, { qos: 1 }))).toMatchObject({ ok: true })
    await mosquitto.kill()
    await expect
      .poll(() => endpoint.send(request(uri, { qos: 1 })))
      .toMatchObject({ ok: false, kind: 'refused' })
    await mosquitto.start()
    expect(await endpoint.send(request(uri, { qos: 1 }))).toMatchObject({ ok: true })
  })
})

describePeer('mosquitto', 'a Mosquitto that takes small packets only', (path) => {
  it.each([0, 1] as const)(
    'gets no larger one by MQTT 5 with QoS %i, and the reason is given',
    async (qos) => {
      const max = 400
      const mosquitto = await createMosquitto(path, [`max_packet_size ${max}`])
      await mosquitto.start()
      const uri = `mqtt://127.0.0.1:${mosquitto.port}/small/t`
      const send = (length: number) => endpoint.send({ ...request(uri, { qos }), body: 'x'.repeat(length) })
      const listener = await connectAsync(`mqtt://127.0.0.1:${mosquitto.port}`)
      const arrived: number[] = []
      listener.on('message', (_topic, payload) => arrived.push(payload.length))
      await listener.subscribeAsync('small/#')
      // Fixed header 3, topic 2 and 7, no properties 1, and with QoS 1 an identifier of 2.
      const most = max - 13 - (qos > 0 ? 2 : 0)
      expect(await send(most + 1)).toEqual({
        ok: false,
        kind: 'unsendable',
        reason: `the broker accepts packets of at most ${max} bytes`,
      })
      expect(await send(most)).toMatchObject({ ok: true })
      await expect.poll(() => arrived).toEqual([most])
      await listener.endAsync()
      await mosquitto.remove()
    },
  )
})

describePeer('mosquitto', 'a Mosquitto with users', (path) => {
  it('is accepted only with the right user', async () => {
    const file = temporaryDatabase()
    const passwords = `${file.file}.passwords`
    execFileSync(findPeer('mosquitto_passwd')!, ['-b', '-c', passwords, 'someone', 'secret'])
    const mosquitto = await createMosquitto(path, ['allow_anonymous false', `password_file ${passwords}`])
    await mosquitto.start()
    const at = `127.0.0.1:${mosquitto.port}/t`
    const wishes = { qos: 1 } as const
    expect(await endpoint.send(request(`mqtt://someone:secret@${at}`, wishes))).toMatchObject({
      ok: true,
    })
    for (const uri of [`mqtt://${at}`, `mqtt://someone:wrong@${at}`]) {
      expect(await endpoint.send(request(uri, wishes))).toMatchObject({ ok: false, kind: 'protocol' })
    }
    await mosquitto.remove()
    file.remove()
  })
})

const lengths = 400

/**
 * A process that publishes many different lengths and allocates small buffers in between; prints the memory
 * in use, in bytes.
 */
const ofManyLengths = `
  import { systemClock } from '#base/time/clock.ts'
  import { createPublisher } from '#mqtt/notify/publisher.ts'
  const publisher = createPublisher(systemClock, { allowsLoopback: true })
  const send = (length) =>
    publisher.send({ uri: process.argv[1], body: 'x'.repeat(length), mqtt: { version: 4, qos: 1 } })
  await send(1)
  gc()
  const before = process.memoryUsage().arrayBuffers
  for (let length = 200; length < 200 + ${lengths}; length++) {
    for (let i = 0; i < 20; i++) Buffer.allocUnsafe(4000)
    if (!(await send(length)).ok) throw new TypeError('it was not taken')
  }
  // Another thread releases collected memory a moment later.
  let held = Infinity
  for (let i = 0; i < 20; i++) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 50))
    held = Math.min(held, process.memoryUsage().arrayBuffers - before)
  }
  console.log(held)
  publisher.close()
`

describe('an MQTT notification', () => {
  it("is sent to the gateway's own broker, by MQTT 3.1.1 and by MQTT 5", async () => {
    const file = temporaryDatabase()
    const broker = await openBroker(file.file, {})
    const uri = `mqtt://127.0.0.1:${broker.port}/told`
    for (const qos of [0, 1, 2] as const) {
      expect(await endpoint.send(request(uri, { qos }))).toMatchObject({ ok: true })
    }
    for (const version of [4, 5] as const) {
      expect(await endpoint.send(request(uri, { version }))).toMatchObject({ ok: true })
    }
    await broker.close()
    file.remove()
  })

  it('frees its memory, although the library caches a buffer for each length', async () => {
    const file = temporaryDatabase()
    const broker = await openBroker(file.file, {})
    const flags = ['--expose-gc', '--input-type=module', '-e', ofManyLengths]
    const uri = `mqtt://127.0.0.1:${broker.port}/told`
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, uri])
    expect(Number(stdout)).toBeLessThan(lengths * 1024)
    await broker.close()
    file.remove()
  })

  it('is not sent to a broker with an untrusted certificate', async () => {
    const server = createServer({ key, cert: certificate }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    expect(await endpoint.send(request(`mqtts://127.0.0.1:${port}/t`))).toMatchObject({
      ok: false,
      kind: 'tls',
    })
    server.close()
  })

  it('fails in time when the broker does not answer, and is never sent to this machine if that is forbidden', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const uri = `mqtt://127.0.0.1:${port}/t`
    expect(await endpoint.send(request(uri, { version: 4 }))).toMatchObject({ ok: false })
    const careful = createPublisher(systemClock, { allowsLoopback: false })
    expect(await careful.send(request(uri))).toMatchObject({ ok: false, kind: 'forbidden' })
    expect(await careful.send(request(`mqtt://localhost:${port}/t`))).toMatchObject({ kind: 'forbidden' })
    careful.close()
    server.close()
  })

  it('needs a topic', async () => {
    expect(await endpoint.send(request('mqtt://127.0.0.1'))).toMatchObject({ ok: false, kind: 'unsendable' })
  })
})
