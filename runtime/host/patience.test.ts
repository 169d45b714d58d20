/** The bounded wait for an answer, and the signal that aborts the work. */
import { expect, it } from 'vitest'
import { within } from './patience.ts'

const never = new Promise<never>(() => undefined)

it('returns the result or the error of the work', async () => {
  expect(await within({}, async () => 'done')).toBe('done')
  await expect(within({}, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})

it('ends with the timeout, and aborts the work', async () => {
  let signalSeen: AbortSignal | undefined
  const answer = within({ timeoutMs: 5 }, (signal) => {
    signalSeen = signal
    return never
  })
  expect(await answer).toEqual({ failure: 'timeout', reason: 'no answer within 5 ms' })
  expect(signalSeen?.aborted).toBe(true)
})

it('ends when the caller cancels, and starts no work for a caller that cancelled before', async () => {
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
