/** Documents are true and files belong to no one machine; each check that says so can fail. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import manifest from '#package' with { type: 'json' }
import {
  absentScripts,
  brokenRecords,
  deadLinks,
  deadPaths,
  deadPointers,
  hugeFiles,
  lockedGaps,
  lockedHosts,
  machineTraces,
  oddChangelogLines,
  stalePages,
} from './repository.ts'
import { file, wholeTree } from './tree.ts'

const tree = wholeTree()
const textOf = (path: string): string => tree.find((one) => one.path === path)?.text ?? ''

describe('the repository', () => {
  it('has no huge files', () => expect(hugeFiles(tree)).toEqual([]))
  it('names no machine and no registry', () => expect(machineTraces(tree)).toEqual([]))
  it('locks packages of every platform, without their hosts', () => {
    const lock = readFileSync(join(import.meta.dirname, '..', '..', 'package-lock.json'), 'utf8')
    expect(lock).toContain('"integrity"')
    expect(lockedHosts(lock)).toEqual([])
    expect(lockedGaps(lock)).toEqual([])
  })
  it('numbers its decision records without gaps', () => {
    expect(tree.filter(({ path }) => path.startsWith('docs/decisions/')).length).toBeGreaterThan(10)
    expect(brokenRecords(tree)).toEqual([])
  })
  it('has a change log for operators', () => {
    expect(textOf('CHANGELOG.md')).toContain('### Added')
    expect(oddChangelogLines(textOf('CHANGELOG.md'))).toEqual([])
  })
  it('promises only commands that exist', () => {
    expect(textOf('README.md')).toContain('npm ci && npm run demo')
    expect(textOf('README.md')).toContain('npm ci && npm test')
    expect(absentScripts(tree, manifest.scripts)).toEqual([])
  })
  it('has no dead links', () => expect(deadLinks(tree)).toEqual([]))
  it('names no source file that is gone', () => {
    expect(textOf('docs/architecture.md')).toContain('`broker/commit/door.ts`')
    expect(deadPaths(tree)).toEqual([])
  })
  it('has comments that name files which exist', () => expect(deadPointers(tree)).toEqual([]))
  it('has fresh reference pages', () => expect(stalePages(tree)).toEqual([]))
})

describe('the checks', () => {
  it('see a huge file', () => expect(hugeFiles([file('a.bin', 'x'.repeat(300_000))])).toHaveLength(1))

  it('see paths of a machine and hosts of a registry', () => {
    const traces = ['home', 'root', 'Users'].map((folder) => file('a.md', `see /${folder}/somebody/selvedge`))
    expect(machineTraces(traces)).toHaveLength(3)
    expect(machineTraces([file('a.json', `"https://registry.${'npmjs'}.org/x"`)])).toHaveLength(1)
    expect(
      machineTraces([file('a.md', 'GET /ngsi-ld/v1/home/1, docs/home/start, the root of the tree')]),
    ).toEqual([])
    const parent = { optionalDependencies: { 'tool-linux-x64': '1.0.0', 'tool-win32-x64': '1.0.0' } }
    const lock = { packages: { 'node_modules/tool': parent, 'node_modules/tool-linux-x64': {} } }
    expect(lockedGaps(JSON.stringify(lock))).toHaveLength(1)
    expect(lockedHosts('"resolved": "https://a.example/x.tgz",')).toHaveLength(1)
  })

  it('see a gap, a twin and a missing part in decision records', () => {
    const parts = '\n## Context\n\n## Decision\n\n## Consequences\n\n## Alternatives\n'
    expect(
      brokenRecords([file('docs/decisions/0001-a.md', parts), file('docs/decisions/0003-b.md', parts)]),
    ).toHaveLength(1)
    expect(
      brokenRecords([file('docs/decisions/0001-a.md', parts), file('docs/decisions/0001-b.md', parts)]),
    ).toHaveLength(1)
    expect(brokenRecords([file('docs/decisions/0001-a.md', '## Context\n')])).toHaveLength(4)
  })

  it('see a line of the change log that is no entry, and a version without a number', () => {
    expect(oddChangelogLines('# Changelog\n\n## 0.1.0 (unreleased)\n\n### Fixed\n\n- A thing.\n')).toEqual([])
    expect(oddChangelogLines('# Changelog\n* mended a thing\n## Soon\n')).toHaveLength(2)
  })

  it('see absent scripts, dead links and stale pages', () => {
    expect(absentScripts([file('README.md', '`npm run dance` or `npm test`')], { test: 'x' })).toHaveLength(1)
    expect(
      deadLinks([file('docs/a.md', '[b](./b.md) [c](../c/d.md) [web](https://a.example/)')]),
    ).toHaveLength(2)
    expect(deadLinks([file('docs/a.md', '[b](b.md#part)'), file('docs/b.md', '')])).toEqual([])
    const named = file('docs/a.md', '`room/a.ts`, `room/b.ts` and `test/kit/c.ts`')
    expect(deadPaths([named, file('runtime/room/a.ts', ''), file('test/kit/c.ts', '')])).toHaveLength(1)
    const pointing = file('runtime/room/a.ts', '/** See `b.ts`, `room/c.ts` and `d.ts`. */')
    expect(deadPointers([pointing, file('runtime/room/b.ts', ''), file('plugins/room/c.ts', '')])).toEqual([
      'runtime/room/a.ts names d.ts, which does not exist',
    ])
    expect(stalePages([]).length).toBeGreaterThan(3)
  })
})
