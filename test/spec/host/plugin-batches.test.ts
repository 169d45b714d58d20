/**
 * The time of a batch of observations for a plugin does not grow with the number of streams. Each stream is
 * known by its number once its entity was read.
 */
import { describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type ChangeBatch, definePlugin, type Host } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { observe } from '#test/kit/broker.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { pluginsOfFile } from '#test/kit/plugins-of-file.ts'

const site = pluginsOfFile()

describe('observations', () => {
  it('are delivered in batches that read few entities, for any number of observations', async () => {
    setLimit('pluginBatchEntities', 8)
    setLimit('pluginBatchMs', 10_000)
    const ids = Array.from({ length: 40 }, (_, i) => `urn:x:${i}`)
    for (const id of ids)
      await site.open.broker.create({ id, type: 'T', a: { type: 'Property', value: 1 } } as Entity, 'http')
    let from = 0
    const batches: ChangeBatch['observed'][] = []
    const watching = definePlugin({
      name: 'watcher',
      version: '1.0.0',
      summary: 'Watches',
      needs: ['changes'],
      start({ changes }: Host<object, 'changes'>) {
        changes.follow(from, {
          types: new Set(),
          observes: 'newest',
          take: ({ observed }) => void batches.push(observed),
          readAnew: () => changes.position(),
        })
        return {}
      },
    })
    from = site.open.main.following.position().n
    const at = Date.UTC(2026, 0, 1)
    for (const id of ids) await observe(site.open, id, 'a', at, 7)
    for (const id of ids) await observe(site.open, id, 'a', at + 1000, 8)
    await site.start([watching])
    await vi.waitFor(() => {
      const newest = new Map(batches.flat().map(({ id, value }) => [id, value]))
      expect([...newest]).toEqual(ids.map((id) => [id, 8]))
    })
    const known = new Set<string>()
    for (const batch of batches) {
      const fresh = batch.filter(({ id }) => !known.has(id))
      expect(fresh.length).toBeLessThanOrEqual(limits.pluginBatchEntities.value)
      for (const { id } of fresh) known.add(id)
    }
  })
})
