/**
 * Gaps of evicted history: they name its owner, even if the entity was deleted and left no record, and never
 * name entities that are not selected.
 */
import { expect, test } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { parseScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import {
  dayMs,
  type HistorySite,
  megabyte,
  perFold,
  sitesOfFile,
  startMs,
  wallMs,
} from '#test/kit/history-site.ts'
import { type EvictedPorts, evictedGaps } from '#uplink/progress/evicted-gaps.ts'
import { type GapReport, newState, readState, type UplinkState } from '#uplink/progress/uplink-state.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { selectionOf } from '#uplink/steps/uplink-selection.ts'

const { temporaryFolder, openSite } = sitesOfFile()
const gone = 'urn:Store:gone'
const kept = 'urn:Store:kept'

/** A site without any data of a deleted entity. */
async function siteWithout(): Promise<HistorySite> {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte, maxAgeDays: 10 })
  for (const id of [gone, kept]) await site.create(id)
  for (const id of [gone, kept]) await site.fold(id, startMs)
  await site.broker.remove(gone, 'http')
  // Records are folded after half an hour, and count as settled at the next check of the log.
  for (let i = 0; i < 4; i++) {
    site.clock.ahead += 40 * 60_000
    await site.turn()
  }
  site.clock.wall += 11 * dayMs
  for (let i = 0; i < 3; i++) {
    site.clock.ahead += 3_600_000
    await site.settle()
  }
  return site
}

interface Told {
  readonly of: unknown
  readonly attribute: unknown
  readonly atMost: unknown
}

const rule = { prefix: 'urn:gap', alias: 'site', scopePrefix: createScopePrefix(undefined) }
const newTelling = (): GapReport => ({ began: 0, to: 1, unnamed: {} })
const portsOf = (site: HistorySite, state: UplinkState, selected: object = {}): EvictedPorts => ({
  state,
  following: site.following,
  backlog: site.retained,
  selection: selectionOf({
    notification: { endpoint: { uri: 'http://centre' } },
    ...selected,
  } as unknown as Subscription),
})

/** All steps when each page is accepted at once. */
function stepsBy(ports: EvictedPorts, telling: GapReport): readonly Step[] {
  const steps: Step[] = []
  for (const page of evictedGaps(ports, rule, telling)) {
    steps.push(...page.steps)
    page.onAccepted()
  }
  return steps
}

function toldBy(site: HistorySite, selected: object): readonly Told[] {
  const ports = portsOf(site, newState({ n: 0, at: 0 }, undefined), selected)
  return stepsBy(ports, newTelling()).flatMap((step) => {
    if (step.kind !== 'put') return []
    const instance = (name: string) => step.attributes.get(name)?.[0]
    return {
      of: instance('gapOf')?.['object'],
      attribute: instance('gapAttribute')?.value,
      atMost: instance('lostAtMost')?.value,
    }
  })
}

const types = (name: string) => ({ entities: [{ types: { kind: 'type', name } }] })

test('gaps name the owner of the history, though nothing else is left of it', async () => {
  const site = await siteWithout()
  expect(site.count('SELECT count(*) FROM tombstone')).toBe(0)
  const all = toldBy(site, {})
  expect(all.filter(({ of }) => of === gone)).toEqual([
    { of: gone, attribute: 'level', atMost: perFold },
    { of: gone, attribute: undefined, atMost: 2 },
  ])
  expect(toldBy(site, types('Store'))).toEqual(all)
  expect(toldBy(site, types('Other'))).toEqual([])
  // It is unknown whether it was selected.
  const byValue = toldBy(site, { ...types('Store'), scopeQ: parseScopeQuery('/nowhere') })
  expect(byValue.map(({ of }) => of)).toEqual([undefined])
})

/** Eviction records of entities without other data: a number with an owner, and every fifth without one. */
async function siteWithGaps(count: number): Promise<HistorySite> {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte })
  await site.door.commit((stage) => {
    for (let g = 1; g <= count; g++) {
      const rid = 1_000_000 + g
      stage.write(
        'gap.insert',
        g,
        0,
        rid,
        0,
        startMs + g,
        startMs + g,
        1,
        startMs,
        'age',
        startMs + g,
        startMs,
        g % 2 === 0 ? 1 : 0,
      )
      if (g % 5 === 0) continue
      const doc = JSON.stringify({ id: `urn:Store:${g}`, type: 'Store' })
      stage.write('tombstone.insert', g, `urn:Store:${g}`, rid, startMs, doc, null, null)
      stage.write('gap.own', g, rid)
      stage.write('tombstone.delete', g)
    }
  })
  return site
}

test('gaps are read, sent and released one request at a time, and resume after a crash', async () => {
  const count = 2100
  const site = await siteWithGaps(count)
  const most = limits.uplinkEntitiesPerRequest.value
  const asked: number[] = []
  const backlog = {
    ...site.retained,
    gapsSince: (...args: Parameters<typeof site.retained.gapsSince>) => {
      const rows = site.retained.gapsSince(...args)
      asked.push(rows.length)
      return rows
    },
  }
  let state = newState({ n: 0, at: 0 }, undefined)
  let telling = newTelling()
  const taken = new Map<string, number>()
  let pages = 0
  for (let isDone = false; !isDone; ) {
    isDone = true
    let onDisk = JSON.stringify({ ...state, telling })
    for (const { steps, onAccepted } of evictedGaps({ ...portsOf(site, state), backlog }, rule, telling)) {
      expect(steps.length).toBeLessThanOrEqual(most)
      expect(asked.length).toBeLessThanOrEqual(++pages)
      for (const { entity, ...step } of steps) {
        const lost = (step as unknown as { attributes: Map<string, { value: number }[]> }).attributes
        taken.set(entity.id, lost.get('lostAtMost')![0]!.value)
      }
      // Each third page is accepted, and that is lost.
      if (pages % 3 === 0) {
        ;({ telling = newTelling(), ...state } = readState(onDisk))
        isDone = false
        break
      }
      onAccepted()
      onDisk = JSON.stringify({ ...state, telling })
    }
  }
  expect(asked.every((rows) => rows <= most)).toBe(true)
  expect(taken.size).toBe(count - count / 5 + 1)
  expect([...taken.values()].reduce((sum, one) => sum + one, 0)).toBe(count)
})

test('gaps are sent again to a centre that lost them, if they were merged before another uplink sent them', async () => {
  const site = await siteWithGaps(1000)
  const state = newState({ n: 0, at: 0 }, undefined)
  state.telling = newTelling()
  const ports = portsOf(site, state)
  const ids = (steps: readonly Step[]): readonly string[] => steps.map(({ entity }) => entity.id)
  const first = ids(stepsBy(ports, { ...newTelling(), began: 1 }))
  const again = ids(stepsBy(ports, { ...newTelling(), began: wallMs, to: 2, again: 0 }))
  expect(first).toHaveLength(801)
  expect(again).toHaveLength(401)
  expect(again.slice(0, -1).every((id) => first.includes(id))).toBe(true)
  expect(stepsBy(ports, newTelling())).toEqual([])
  expect(state.telling).toBeUndefined()
  // A centre that had received all lost all of them.
  state.gapsBefore = startMs + 501
  expect(stepsBy(ports, { ...newTelling(), began: wallMs, to: 3, again: 0 })).toHaveLength(601)
  // Gaps of a pending span are not reported before it.
  state.gap = 501
  state.spans = [{ from: startMs, to: wallMs }]
  const early = ids(stepsBy(ports, { ...newTelling(), began: wallMs, to: 4, again: 0 }))
  const late = ids(stepsBy(ports, { ...newTelling(), began: startMs, to: 5 }))
  expect([early.length, late.length]).toEqual([401, 400])
  expect(early.filter((id) => late.includes(id))).toEqual([])
})
