/**
 * What is told of history that vanished here: whose it was, also where the entity is deleted and left no trace, and nothing of
 * those that are not selected.
 */
import { expect, test } from 'vitest'
import { parseScopeQuery } from '#ngsi-ld/scope-query.ts'
import type { Subscription } from '#ngsi-ld/subscription.ts'
import { dayMs, type HistorySite, megabyte, perFold, sitesOfFile, startMs } from '#test/kit/history-site.ts'
import { evictedGaps } from '#uplink/evicted.ts'
import { createPlacing } from '#uplink/placing.ts'
import { selectionOf } from '#uplink/selection.ts'
import { newState } from '#uplink/state.ts'

const { temporaryFolder, openSite } = sitesOfFile()
const gone = 'urn:Store:gone'
const kept = 'urn:Store:kept'

/** A site that holds nothing any more of an entity that was deleted. */
async function siteWithout(): Promise<HistorySite> {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte, maxAgeDays: 10 })
  for (const id of [gone, kept]) await site.create(id)
  for (const id of [gone, kept]) await site.fold(id, startMs)
  await site.broker.remove(gone, 'http')
  // Records fold when they are half an hour old, and count as settled with the next look at the log.
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

function toldBy(site: HistorySite, selected: object): readonly Told[] {
  const subscription = { notification: { endpoint: { uri: 'http://centre' } }, ...selected }
  const { steps } = evictedGaps(
    {
      state: newState({ n: 0, at: 0 }, undefined),
      following: site.following,
      backlog: site.retained,
      selection: selectionOf(subscription as Subscription),
    },
    { prefix: 'urn:gap', alias: 'site', placing: createPlacing(undefined) },
    0,
  )
  return steps.flatMap((step) => {
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

test('gaps name whose history it was, though nothing else is left of it', async () => {
  const site = await siteWithout()
  expect(site.count('SELECT count(*) FROM tombstone')).toBe(0)
  const all = toldBy(site, {})
  expect(all.filter(({ of }) => of === gone)).toEqual([
    { of: gone, attribute: 'level', atMost: perFold },
    { of: gone, attribute: undefined, atMost: 2 },
  ])
  expect(toldBy(site, types('Store'))).toEqual(all)
  expect(toldBy(site, types('Other'))).toEqual([])
  // Nobody knows any more whether it was selected.
  const byValue = toldBy(site, { ...types('Store'), scopeQ: parseScopeQuery('/nowhere') })
  expect(byValue.map(({ of }) => of)).toEqual([undefined])
})
