/** The consequence of every kind of failure. */
import { describe, expect, it } from 'vitest'
import { consequenceOf, type FailureKind } from './verdict.ts'

const consequence = (kind: FailureKind, status?: number) =>
  consequenceOf({ ok: false, kind, reason: '', status })

describe('a failure', () => {
  it('to connect is followed by probing', () => {
    expect((['refused', 'unreachable', 'dns'] as const).map((kind) => consequence(kind))).toEqual(
      Array(3).fill('down'),
    )
  })
  it('after connecting is retried', () => {
    const kinds = ['tls', 'timeout', 'reset', 'protocol', 'forbidden'] as const
    expect(kinds.map((kind) => consequence(kind))).toEqual(Array(5).fill('retry'))
  })
  it('with a permanent 4xx is poison, with any other status it is retried', () => {
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
  it('before anything was sent makes a dead letter', () => {
    expect(consequence('unsendable')).toBe('dead-letter')
  })
})
