/** Secrets in the addresses of callbacks. */
import { expect, it } from 'vitest'
import { checkSignature, checkSignedPurpose, signatureOf, signedPurpose } from './callback-signature.ts'

it('accepts the address of the same secret and purpose', () => {
  expect(signatureOf('s', 'stream')).toMatch(/^[0-9a-f]{40}$/)
  expect(() => checkSignedPurpose('s', signedPurpose('s', 'stream'))).not.toThrow()
})

it.each([
  ['another secret', signedPurpose('t', 'stream')],
  ['another purpose', signedPurpose('s', 'stream').replace('stream', 'sensor')],
  ['no signature', 'stream'],
  ['a part of it', signedPurpose('s', 'stream').slice(0, -1)],
])('rejects an address with %s', (_, given) => {
  expect(() => checkSignedPurpose('s', given)).toThrow('does not have the secret')
})

it('rejects a signature that differs', () => {
  expect(() => checkSignature('a', 'b')).toThrow('does not have the secret')
})
