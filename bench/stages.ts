/**
 * CPU of each stage an observation passes on the main thread, measured in this process over many repetitions: decode,
 * accept (claim, decode, time rules), decide (identity, state, log, matching), and in the writer thread: encode the
 * log blob, fold into a chunk.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { bridges } from '#bridges/registry.ts'
import { senml } from '#bridges/senml/decoder.ts'
import { createGroup } from '#broker/commit/stage.ts'
import { openTenants } from '#broker/tenant/tenants.ts'
import type { Frame } from '#contract'
import { openIntake } from '#intake/open-intake.ts'
import { encodeChunk } from '#store/chunks/chunk-codec.ts'
import { encodeObservations } from '#store/chunks/observation-blob.ts'
import { createWriter } from '#store/writer/writer.ts'
import { unmended } from '#test/kit/mending.ts'

const repetitions = 100_000
const devices = 100

/** Median microseconds per item over rounds of `count` items. */
function micros(count: number, run: (round: number) => void): number {
  const rounds: number[] = []
  for (let round = 0; round < 7; round++) {
    const from = performance.now()
    run(round)
    rounds.push(((performance.now() - from) * 1000) / count)
  }
  return rounds.toSorted((a, b) => a - b)[3]!
}

export async function benchStages(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-bench-'))
  const metrics = createMetrics()
  const log = createLog({ level: 'error', clock: systemClock, write: (line) => process.stderr.write(line) })
  const writer = createWriter((error) => {
    throw error
  })
  const tenants = await openTenants(
    { ...unmended(folder, log), writer, clock: systemClock, log, metrics },
    { lingerMs: 0, synchronous: 'FULL', writebackMs: 60_000, history: { maxBytes: 2 ** 32 } },
  )
  const { main } = tenants
  const provisioning = {
    mode: 'auto',
    allow: [],
    ignore: [],
    shareObservableProperty: false,
    devices: {},
  } as const
  const addressOf = () => ({
    endpoint: 'mqtt://127.0.0.1',
    interfaceType: 'MQTT',
    topic: 'senml/x',
    format: '',
  })
  const { intake } = await openIntake(
    { ...main, bridges, addressOf, ownClients: new Set(), clock: systemClock, log, metrics },
    { provisioning, bridges: { json: [] } },
  )
  const start = Date.now()
  let sequence = 0
  const frames = (): Frame[] =>
    Array.from({ length: repetitions }, () => {
      const at = (start - 86_400_000 + 10 * sequence++) / 1000
      const value = Math.round((20 + 5 * Math.sin(sequence / 100)) * 100) / 100
      const payload = `[{"bn":"d${sequence % devices}:","n":"temp","u":"Cel","v":${value},"t":${at.toFixed(3)}}]`
      const topic = `senml/d${sequence % devices}`
      return { topic, payload: Buffer.from(payload), receivedAt: start, retained: false, transport: 'mqtt' }
    })
  for (const frame of frames().slice(-devices)) await intake.take(frame)

  const print = (name: string, value: number): void => {
    process.stdout.write(`${name.padEnd(60)} ${value.toFixed(2)} us\n`)
  }
  const sample = frames()
  print(
    'JSON.parse of the payload (the floor of decoding)',
    micros(repetitions, () => {
      for (const { payload } of sample) JSON.parse(Buffer.from(payload).toString())
    }),
  )
  print(
    'decode: SenML bridge',
    micros(repetitions, () => {
      for (const frame of sample) senml.decode(frame, undefined)
    }),
  )
  print(
    'accept: claim, decode, time rules',
    micros(repetitions, () => {
      for (const frame of sample) intake.accept(frame)
    }),
  )
  const accepted = Array.from({ length: 7 }, () => frames().map((frame) => intake.accept(frame)!))
  print(
    'decide: channel, identity, state, log, matching (no subscription)',
    micros(repetitions, (round) => {
      const group = createGroup({ at: start, number: round })
      for (const frame of accepted[round]!) frame.decide(group.stage)
      group.undo()
    }),
  )
  const triples = Float64Array.from(
    { length: 256 * 3 },
    (_, i) => [(i % 100) * 2, start + i, 20 + (i % 500) / 100][i % 3]!,
  )
  print(
    'writer: encode a log blob of 256',
    micros(256 * 200, () => {
      for (let i = 0; i < 200; i++) encodeObservations({ triples, others: [] })
    }),
  )
  const times = Float64Array.from({ length: 1024 }, (_, i) => start + i * 1000)
  const values = times.map((_, i) => Math.round((20 + 5 * Math.sin(i / 100)) * 100) / 100)
  print(
    'writer: fold, one chunk of 1,024',
    micros(1024 * 20, () => {
      for (let i = 0; i < 20; i++) encodeChunk({ times, modified: times, values, shapes: ['{}'] })
    }),
  )
  await tenants.close()
  await writer.end()
  rmSync(folder, { recursive: true, force: true })
}
