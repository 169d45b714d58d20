/**
 * What happens between a site and the other broker, scene by scene: each makes traffic and trouble, and then waits until both
 * ends hold the same, or for long enough to say that they never will.
 */
import type { Fault } from '#test/kit/fault-proxy.ts'
import type { Difference, Site } from './site.ts'

export interface SceneResult {
  readonly name: string
  /** Observations made in it. */
  readonly observations: number
  /** Seconds from the end of the trouble until both ends were the same; undefined when they never were. */
  readonly seconds: number | undefined
  readonly difference: Difference
}

export interface ScenesSettings {
  /** Length of the traffic of a scene, s. */
  readonly seconds: number
  /** Observations of the backlog that is drained. */
  readonly backlog: number
  readonly devices: number
  readonly patienceMs: number
  readonly tell: (line: string) => void
}

const quietMs = 8000

type Scene = readonly [name: string, play: (site: Site, settings: ScenesSettings) => Promise<void>]

const scenes: readonly Scene[] = [
  ['what was there before, and live', (site, { seconds }) => traffic(site, seconds)],
  ['late values', late],
  ['refused, with deletions meanwhile', outage],
  ['black hole', (site, { seconds }) => under(site, 'blackhole', seconds)],
  ['answers 503, 429 and a 207 that lacks an item', errors],
  ['kill -9 of the gateway in an outage', kill],
  ['flapping', (site, { seconds }) => under(site, 'flapping', seconds)],
  ['a backlog drained', drain],
]

export interface Play {
  /** What the other broker makes of the entities by itself; differences of no scene. */
  readonly ways: readonly string[]
  readonly results: readonly SceneResult[]
}

export async function playScenes(site: Site, settings: ScenesSettings): Promise<Play> {
  const results: SceneResult[] = []
  const ways = await waysOf(site, settings)
  for (const line of ways) settings.tell(`its own way: ${line}`)
  for (const [name, play] of scenes) {
    const before = site.observations()
    await play(site, settings)
    const result = {
      name,
      observations: site.observations() - before,
      ...(await agree(site, ways, settings)),
    }
    results.push(result)
    const outcome =
      result.seconds === undefined ? 'NOT the same' : `the same after ${result.seconds.toFixed(1)} s`
    settings.tell(`${name}: ${result.observations} observations, ${outcome}`)
    for (const line of result.difference.entities.slice(0, 12)) settings.tell(`  ${line}`)
    const { missing, repeated, foreign } = result.difference
    if (missing + repeated + foreign > 0)
      settings.tell(`  histories: ${missing} missing, ${repeated} repeated, ${foreign} that nobody made`)
  }
  return { ways, results }
}

/** What of the first entities stays different though nothing happens. */
async function waysOf(site: Site, { patienceMs }: ScenesSettings): Promise<readonly string[]> {
  let last: readonly string[] = []
  let lastChange = performance.now()
  for (const began = lastChange; performance.now() - began < patienceMs; await passed(500)) {
    const { entities } = await site.compare()
    if (entities.length === 0) return []
    if (entities.join() !== last.join()) lastChange = performance.now()
    else if (performance.now() - lastChange > quietMs) return entities
    last = entities
  }
  return last
}

/** What cannot become better ends the wait early: the same difference for a third of the patience. */
async function agree(
  site: Site,
  ways: readonly string[],
  { patienceMs }: ScenesSettings,
): Promise<Pick<SceneResult, 'seconds' | 'difference'>> {
  const began = performance.now()
  let last = ''
  let lastChange = began
  for (;;) {
    const at = performance.now()
    const seen = await site.compare()
    const difference = { ...seen, entities: seen.entities.filter((line) => !ways.includes(line)) }
    const { entities, missing, foreign } = difference
    if (entities.length + missing + foreign === 0) return { seconds: (at - began) / 1000, difference }
    const text = JSON.stringify(difference)
    if (text !== last) lastChange = at
    last = text
    if (at - began > patienceMs || at - lastChange > patienceMs / 3) return { seconds: undefined, difference }
    await passed(250)
  }
}

async function traffic(site: Site, seconds: number): Promise<void> {
  const until = performance.now() + seconds * 1000
  for (let i = 0; performance.now() < until; i++) {
    await site.observe()
    await site.write('PATCH', `/entities/${site.id('number')}/attrs`, {
      level: { type: 'Property', value: i },
    })
    await passed(200)
  }
}

async function under(site: Site, fault: Fault, seconds: number): Promise<void> {
  await site.proxy.set(fault)
  await traffic(site, seconds)
  await site.proxy.set('none')
}

async function late(site: Site): Promise<void> {
  await site.observe({ count: 20 })
  await site.observe({ isLate: true })
  await site.observe()
  await site.observe({ isLate: true })
}

const thing = (id: string, more: object): object => ({ id, type: 'InteropThing', ...more })
const level = (value: number): object => ({ level: { type: 'Property', value } })

async function outage(site: Site, { seconds }: ScenesSettings): Promise<void> {
  const [gone, reborn, lessened] = [site.id('gone'), site.id('reborn'), site.id('lessened')]
  for (const id of [gone, reborn]) await site.write('POST', '/entities', thing(id, level(1)))
  await site.write(
    'POST',
    '/entities',
    thing(lessened, { ...level(1), name: { type: 'Property', value: 'x' } }),
  )
  await passed(2000)
  await site.proxy.set('refused')
  await traffic(site, seconds)
  await site.write('DELETE', `/entities/${gone}`)
  await site.write('DELETE', `/entities/${reborn}`)
  await site.write('POST', '/entities', thing(reborn, { colour: { type: 'Property', value: 'red' } }))
  await site.write('DELETE', `/entities/${lessened}/attrs/name`)
  await site.write('POST', '/entities', thing(site.id('new'), level(2)))
  await site.proxy.set('none')
}

async function errors(site: Site, { seconds }: ScenesSettings): Promise<void> {
  for (const fault of [503, 429, 207] as const) await under(site, fault, seconds / 3)
}

async function kill(site: Site, { seconds }: ScenesSettings): Promise<void> {
  await site.proxy.set('half-open')
  await traffic(site, seconds / 2)
  await site.kill()
  await site.start()
  await traffic(site, seconds / 2)
  await site.proxy.set('none')
}

async function drain(site: Site, { backlog, devices }: ScenesSettings): Promise<void> {
  await site.proxy.set('refused')
  const packs = Math.ceil(backlog / devices / 50)
  for (let i = 0; i < packs; i++) await site.observe({ count: 50 })
  // Longer than what the live lane goes through by itself.
  await passed(6000)
  await site.proxy.set('none')
}

const passed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
