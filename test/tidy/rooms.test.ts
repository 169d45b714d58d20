/** The arrows between rooms hold, and each check that says so can fail. */
import { describe, expect, it } from 'vitest'
import { barrels, crookedImports, cycles, forbiddenArrows, strayLibraries } from './rooms.ts'
import { file, isProduct, wholeTree } from './tree.ts'

const tree = wholeTree()

describe('the rooms of the house', () => {
  it('are all seen', () => expect(tree.filter(isProduct).length).toBeGreaterThan(60))
  it('import only from lower shelves', () => expect(forbiddenArrows(tree)).toEqual([]))
  it('have no cycles', () => expect(cycles(tree)).toEqual([]))
  it('own their libraries alone', () => expect(strayLibraries(tree)).toEqual([]))
  it('are entered by # and walked by ./', () => expect(crookedImports(tree)).toEqual([]))
  it('have one barrel, the contract', () => expect(barrels(tree)).toEqual([]))
})

describe('the checks', () => {
  it('see an arrow up, sideways, out of a bridge, and by a URL', () => {
    const complaints = forbiddenArrows([
      file('runtime/store/a.ts', "import { x } from '#broker/commit/door.ts'"),
      file('runtime/http/a.ts', "export type { X } from '#mqtt/mqtt-server.ts'"),
      file('firmware-bridges/a/decoder.ts', "import { limits } from '#base/limits/limits.ts'"),
      file('runtime/store/b.ts', "new URL('../broker/x.ts', import.meta.url)"),
      file('runtime/ngsi-ld/a.ts', "import { x } from '#contract/pipeline.ts'"),
    ])
    expect(complaints).toHaveLength(5)
    expect(complaints[0]).toBe(
      'runtime/store/a.ts imports #broker/commit/door.ts: store may not know broker/commit',
    )
  })

  it('see an arrow up within a room, and to what stands beside its folders', () => {
    const complaints = forbiddenArrows([
      file('runtime/broker/commit/a.ts', "import type { X } from '#broker/tenant/b.ts'"),
      file('runtime/http/request/a.ts', "import { x } from '#http/app.ts'"),
      file('runtime/http/entities/a.ts', "import { x } from '#http/request/b.ts'"),
      file('plugins/search/schema/a.ts', "import { x } from '#plugins/search/reads/b.ts'"),
    ])
    expect(complaints).toEqual([
      'runtime/broker/commit/a.ts imports #broker/tenant/b.ts: broker/commit may not know broker/tenant',
      'runtime/http/request/a.ts imports #http/app.ts: http/request may not know http',
      'plugins/search/schema/a.ts imports #plugins/search/reads/b.ts: plugins/search/schema may not know plugins/search/reads',
    ])
  })

  it('let good arrows pass', () => {
    const good = [
      file('runtime/store/a.ts', "import { x } from '#base/register/errors.ts'\nimport { y } from './b.ts'"),
      file('runtime/ngsi-ld/a.ts', "import type { Json } from '#contract/pipeline.ts'"),
      file('firmware-bridges/a/decoder.ts', "import { defineBridge } from '#contract'"),
    ]
    expect([...forbiddenArrows(good), ...crookedImports(good)]).toEqual([])
  })

  it('see a cycle through two rooms', () => {
    const ring = [
      file('runtime/base/a.ts', "import { b } from './b.ts'"),
      file('runtime/base/b.ts', "import type { A } from '#base/a.ts'"),
    ]
    expect(cycles(ring)).toHaveLength(2)
  })

  it('see a library outside its room, and one that no room owns', () => {
    const stray = [
      file('runtime/broker/a.ts', "import Database from 'better-sqlite3'"),
      file('runtime/http/a.ts', "import { something } from 'left-pad'"),
      file('runtime/http/b.ts', "import { serve } from '@hono/node-server'"),
    ]
    expect(strayLibraries(stray)).toEqual([
      'runtime/broker/a.ts imports better-sqlite3: it belongs to store',
      'runtime/http/a.ts imports left-pad: no room owns it',
    ])
  })

  it('see crooked imports and barrels', () => {
    const crooked = [
      file('runtime/http/a.ts', "import { x } from '../base/errors.ts'"),
      file('runtime/http/b.ts', "import { x } from '#http/a.ts'"),
    ]
    expect(crookedImports(crooked)).toHaveLength(2)
    expect(barrels([file('runtime/http/index.ts', "export * from './a.ts'")])).toHaveLength(1)
  })
})
