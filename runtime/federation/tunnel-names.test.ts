/**
 * Names of gateways: the first gateway owns a name and others learn its owner, across restarts and incomplete
 * lines.
 */
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createTunnelNames, readTunnelNames, releaseTunnelName } from './tunnel-names.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-names-'))
const file = join(folder, 'tunnel-names')
const clock = { now: () => Date.UTC(2026, 0, 1) }
const [ours, theirs] = ['a'.repeat(20), 'b'.repeat(20)]

describe('the name of a gateway', () => {
  beforeEach(() => rmSync(file, { force: true }))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('belongs to the first gateway that uses it, and is stored on disk', () => {
    const names = createTunnelNames(file, clock)
    expect(names.prove('one', ours, '10.0.0.1')).toBeUndefined()
    expect(names.prove('one', ours, '10.0.0.2')).toBeUndefined()
    expect(names.prove('two', theirs, '10.0.0.3')).toBeUndefined()
    const since = '2026-01-01T00:00:00Z'
    expect(names.prove('one', theirs, '10.0.0.3')).toMatchObject({ alias: 'one', since, from: '10.0.0.1' })
    expect(createTunnelNames(file, clock).prove('one', theirs, '10.0.0.3')).toMatchObject({ alias: 'one' })
    expect(readTunnelNames(file).map(({ alias }) => alias)).toEqual(['one', 'two'])
    expect(readFileSync(file, 'utf8')).not.toContain(ours)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('can be taken by another gateway after its release, also while this gateway runs', () => {
    const names = createTunnelNames(file, clock)
    names.prove('one', ours, '10.0.0.1')
    names.prove('two', ours, '10.0.0.1')
    expect(releaseTunnelName(file, 'one')).toBe(true)
    expect(releaseTunnelName(file, 'one')).toBe(false)
    expect(names.prove('one', theirs, '10.0.0.2')).toBeUndefined()
    expect(names.prove('one', ours, '10.0.0.1')).toMatchObject({ from: '10.0.0.2' })
    expect(names.prove('two', theirs, '10.0.0.2')).toMatchObject({ alias: 'two' })
  })

  it('survives an incomplete line left by a power cut', () => {
    createTunnelNames(file, clock).prove('one', ours, '10.0.0.1')
    appendFileSync(file, 'two 0123')
    const names = createTunnelNames(file, clock)
    expect(names.prove('one', theirs, '10.0.0.2')).toMatchObject({ alias: 'one' })
    expect(names.prove('three', theirs, '10.0.0.2')).toBeUndefined()
    expect(readTunnelNames(file).map(({ alias }) => alias)).toEqual(['one', 'three'])
  })

  it('cannot be taken while the file is invalid', () => {
    const names = createTunnelNames(file, clock)
    names.prove('one', ours, '10.0.0.1')
    appendFileSync(file, 'nonsense\n')
    expect(() => names.prove('two', ours, '10.0.0.1')).toThrow(/line 2/)
    rmSync(file)
    names.prove('one', ours, '10.0.0.1')
    chmodSync(file, 0o644)
    expect(() => createTunnelNames(file, clock).prove('two', ours, '10.0.0.1')).toThrow(/0600/)
  })
})
