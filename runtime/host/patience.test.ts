/** How long somebody waits for an answer, and what is signalSeen to whoever works on it. */
import { expect, it } from 'vitest'
import { within } from './patience.ts'

const never = new Promise<never>(() => undefined)

it('gives what the work gives, good or bad', async () => {
  expect(await within({}, async () => 'done')).toBe('done')
  await expect(within({}, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})

it('ends with the time, and tells the work', async () => {
  let signalSeen: AbortSignal | undefined
  const answer = within({ timeoutMs: 5 }, (signal) => {
    signalSeen = signal
    return never
  })
  expect(await answer).toEqual({ failure: 'timeout', reason: 'no answer within 5 ms' })
  expect(signalSeen?.aborted).toBe(true)
})

it('ends when nobody waits, and begins nothing for who had left before', async () => {
  const leaving = new AbortController()
  const begun: string[] = []
  const work = (name: string) => () => {
    begun.push(name)
    return never
  }
  const answer = within({ signal: leaving.signal }, work('first'))
  leaving.abort()
  expect(await answer).toMatchObject({ failure: 'unreachable' })
  expect(await within({ signal: leaving.signal }, work('second'))).toMatchObject({ failure: 'unreachable' })
  expect(begun).toEqual(['first'])
})
