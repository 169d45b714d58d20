/**
 * `npm run bench -- batches`: batches of 10,000 entities, one after another, and the memory they take. A batch streams
 * through in slices, so that the most the process ever holds has a bound that more batches do not move; what they
 * took is given back once it is quiet. Exits with 1 when either does not hold.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { memory } from './processes.ts'
import { layOutGateway, type Server, startGateway } from './servers.ts'
import { station } from './site.ts'

const batchEntities = 10_000
/** Longer than the gateway waits until it gives memory back. */
const quietMs = 15_000
/** What the later batches may add to the most that the first ones took: a few percent, the allocator's. */
const growthMax = 40
const keptMax = 100

export async function benchBatches({ quick }: { readonly quick: boolean }): Promise<void> {
  const batches = quick ? 6 : 20
  const gateway = await startGateway(layOutGateway())
  try {
    const before = megabytes(gateway)
    const peaks: number[] = []
    for (let n = 0; n < batches; n++) peaks.push(await batch(gateway, n))
    const [early, late] = [Math.max(...peaks.slice(0, batches / 2)), Math.max(...peaks)]
    await pause(quietMs)
    const after = megabytes(gateway)
    process.stdout.write(
      `${batches} batches of ${batchEntities} entities: ${before.toFixed(0)} MB before, at most ${early.toFixed(0)} MB in the first half ` +
        `and ${late.toFixed(0)} MB in all  (goal ${growthMax} MB more), ${after.toFixed(0)} MB when quiet  (goal ${keptMax} MB more than before)\n`,
    )
    if (late - early > growthMax || after - before > keptMax) process.exitCode = 1
  } finally {
    await gateway.stop()
  }
}

const megabytes = ({ pid }: Server): number => memory(pid).resident / 1e6

/** Sends one batch. Returns the most resident memory seen until its answer, MB. */
async function batch(gateway: Server, n: number): Promise<number> {
  const items = Array.from({ length: batchEntities }, (_, i) => ({
    ...station(i),
    round: { type: 'Property', value: n },
  }))
  let most = 0
  const look = setInterval(() => {
    most = Math.max(most, megabytes(gateway))
  }, 50)
  const startedAt = performance.now()
  const answer = await fetch(`http://127.0.0.1:${gateway.httpPort}/ngsi-ld/v1/entityOperations/upsert`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(items),
  })
  await answer.text()
  clearInterval(look)
  if (!answer.ok) throw new TypeError(`the batch was answered with ${answer.status}`)
  const seconds = (performance.now() - startedAt) / 1000
  process.stdout.write(
    `  batch ${n}: ${(batchEntities / seconds).toFixed(0)} entities/s, ${most.toFixed(0)} MB\n`,
  )
  return Math.max(most, megabytes(gateway))
}
