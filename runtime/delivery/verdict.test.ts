/** What follows from every way an attempt can fail. */
import { describe, expect, it } from 'vitest'
import { consequenceOf, type FailureKind } from './verdict.ts'

const consequence = (kind: FailureKind, status?: number) =>
  consequenceOf({ ok: false, kind, reason: '', status })

describe('what follows from a failure', () => {
  it('of connecting is probing', () => {
    expect((['refused', 'unreachable', 'dns'] as const).map((kind) => consequence(kind))).toEqual(
      Array(3).fill('down'),
    )
  })
  it('after connecting is another try', () => {
    const kinds = ['tls', 'timeout', 'reset', 'protocol', 'forbidden'] as const
    expect(kinds.map((kind) => consequence(kind))).toEqual(Array(5).fill('retry'))
  })
  it('with a 4xx that no time heals is poison, with any other status another try', () => {
    const poison: number[] = []
    for (let status = 100; status < 600; status++) {
      if (status >= 200 && status < 300) continue
      if (consequence('status', status) === 'poison') poison.push(status)
      else expect(consequence('status', status)).toBe('retry')
    }
    expect(poison).toHaveLength(100 - 6)
    for (const healing of [401, 403, 404, 408, 410, 429]) expect(poison).not.toContain(healing)
    expect(poison.every((status) => status >= 400 && status < 500)).toBe(true)
  })
  it('before anything was sent is burial', () => {
    expect(consequence('unsendable')).toBe('bury')
  })
})
