/**
 * `npm run eval:quality -- --data DIR`: replays the parking feed to a gateway by MQTT, slot by slot, and compares the
 * quality analyser with the feed: plausibility of every count, completeness' share at the end of every day.
 * Ends with 1 if a count is misjudged or a share is more than a point off.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectRaw, publishPacket } from '#test/kit/mqtt.ts'
import { startGatewayProcess } from '#test/kit/process.ts'
import { optionsOf, wrongUsage } from './options.ts'

const help = `Usage: npm run eval:quality -- --data DIR [--days N]

  --data DIR  the folder with vehiclecount.csv and capacity.csv, or the folder above aarhus_parking
  --days N    the first N days only

Exit code: 0 every count is judged right, and every share within one point; 1 not so; 64 wrong usage.
`
const values = optionsOf('eval:quality', help, { data: { type: 'string' }, days: { type: 'string' } })
if (values.data === undefined) wrongUsage('eval:quality', '--data is missing')
const folder = [values.data, join(values.data, 'aarhus_parking')].find((one) =>
  existsSync(join(one, 'vehiclecount.csv')),
)
if (folder === undefined) wrongUsage('eval:quality', `there is no vehiclecount.csv in ${values.data}`)

const slotMs = 1_800_000
const slotsPerDay = 48
/** One point of a share. */
const toleranceMax = 0.01

interface Slot {
  readonly time: number
  /** By garage; undefined if the feed has none. */
  readonly counts: ReadonlyMap<string, number>
}

interface Judged {
  readonly observations: number
  readonly quality: { readonly plausibility: { readonly absolute?: number }; readonly share?: number }
}

const rowsOf = (name: string): string[][] =>
  readFileSync(join(folder, name), 'utf8')
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(','))

const capacities = new Map(
  rowsOf('capacity.csv')
    .slice(1)
    .map(([garage, spaces]) => [garage!, Number(spaces)]),
)
const [[, ...garages] = [], ...lines] = rowsOf('vehiclecount.csv')
const slots = lines.map(
  ([time, ...counts]): Slot => ({
    time: Date.parse(`${time}:00Z`),
    counts: new Map(garages.flatMap((garage, i) => (counts[i]! === '' ? [] : [[garage, Number(counts[i])]]))),
  }),
)
const days = [...Map.groupBy(slots, ({ time }) => Math.floor(time / (slotMs * slotsPerDay))).values()]

const dataFolder = mkdtempSync(join(tmpdir(), 'selvedge-eval-'))
const gateway = await startGatewayProcess({
  dataFolder,
  env: { SELVEDGE_QUALITY_ENABLED: 'true' },
  config: {
    commit: { lingerMs: 0 },
    provisioning: {
      devices: Object.fromEntries(
        garages.map((garage) => [
          garage,
          {
            fields: {
              vehicles: {
                label: 'parked vehicles',
                min: 0,
                max: capacities.get(garage),
                updateInterval: slotMs / 1000,
              },
            },
          },
        ]),
      ),
    },
  },
})
const client = await connectRaw(gateway.mqttPort, 'parking')
const streams = new Map<string, string>()

async function get(path: string): Promise<unknown> {
  const answer = await fetch(gateway.httpUrl + path, { signal: AbortSignal.timeout(30_000) })
  if (!answer.ok) throw new TypeError(`${path} was answered with ${answer.status}: ${await answer.text()}`)
  return answer.json()
}

/** Publishes a count, and settles when the gateway acknowledged it. */
async function publish(garage: string, time: number, count: number): Promise<void> {
  const payload = JSON.stringify([{ bn: `${garage}:`, n: 'vehicles', v: count, t: time / 1000 }])
  client.send(publishPacket(`senml/${garage}`, payload, { qos: 1, messageId: 1 }))
  await client.next()
}

/** The analyser's account of a garage, as soon as it has counted so many observations. */
async function judgedAfter(garage: string, observations: number): Promise<Judged> {
  for (;;) {
    const id = streams.get(garage)
    if (id === undefined) await findStreams()
    else {
      const judged = (await get(`/quality/api/streams/${encodeURIComponent(id)}`)) as Judged
      if (judged.observations > observations)
        throw new TypeError(`${garage}: ${judged.observations} observations of ${observations}`)
      if (judged.observations === observations) return judged
    }
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
}

async function findStreams(): Promise<void> {
  const { result } = (await get('/quality/api/streams')) as { result: { id: string }[] }
  for (const garage of garages) {
    const found = result.find(({ id }) => id.includes(`:${garage}:`))
    if (found !== undefined) streams.set(garage, found.id)
  }
}

const sent = new Map(garages.map((garage) => [garage, [] as number[]]))
const figures = { counts: 0, over: 0, misjudged: 0, shares: 0, deviation: 0, beyond: 0 }

/** Judges the count of each garage in a slot. */
async function replaySlot({ time, counts }: Slot): Promise<void> {
  for (const [garage, count] of counts) {
    await publish(garage, time, count)
    sent.get(garage)!.push(time)
  }
  for (const [garage, count] of counts) {
    const { quality } = await judgedAfter(garage, sent.get(garage)!.length)
    const isOver = count > capacities.get(garage)!
    figures.counts++
    if (isOver) figures.over++
    if (quality.plausibility.absolute === Number(!isOver)) continue
    figures.misjudged++
    process.stdout.write(`misjudged: ${garage} ${new Date(time).toISOString()} ${count}\n`)
  }
}

/** Compares the share with that of the slots in the 24 hours up to the latest observation. */
async function compareShares(day: string): Promise<void> {
  for (const garage of garages) {
    const times = sent.get(garage)!
    const latest = times.at(-1)
    if (latest === undefined) continue
    const { quality } = await judgedAfter(garage, times.length)
    const expected = Math.min(slotsPerDay, (latest - times[0]!) / slotMs + 1)
    const share = times.filter((time) => time > latest - slotsPerDay * slotMs).length / expected
    const deviation = Math.abs(quality.share! - share)
    figures.shares++
    figures.deviation = Math.max(figures.deviation, deviation)
    if (deviation <= toleranceMax) continue
    figures.beyond++
    process.stdout.write(`share: ${garage} ${day} ${quality.share} instead of ${share.toFixed(4)}\n`)
  }
}

for (const day of days.slice(0, Number(values.days ?? days.length))) {
  for (const slot of day) await replaySlot(slot)
  if (day.some(({ counts }) => counts.size > 0))
    await compareShares(new Date(day[0]!.time).toISOString().slice(0, 10))
}
client.end()
await gateway.stop()
rmSync(dataFolder, { recursive: true, force: true })
process.stdout.write(
  `counts ${figures.counts}, over capacity ${figures.over}, misjudged ${figures.misjudged}\n` +
    `shares ${figures.shares}, largest deviation ${(figures.deviation * 100).toFixed(2)} points, beyond one point ${figures.beyond}\n`,
)
process.exit(figures.misjudged + figures.beyond > 0 ? 1 : 0)
