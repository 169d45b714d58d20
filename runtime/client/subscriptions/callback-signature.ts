/** Secrets in the addresses of callbacks: they prove that one of our subscriptions sends the notification. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '#base/register/errors.ts'

/** The signature of a purpose, as the last part of a callback's path. */
export const signatureOf = (secret: string, purpose: string): string =>
  createHmac('sha256', secret).update(purpose).digest('hex').slice(0, 40)

/** The last part of a callback's path that has the purpose, too. */
export const signedPurpose = (secret: string, purpose: string): string =>
  `${purpose}.${signatureOf(secret, purpose)}`

/** @throws http.unauthorized unless `signedPurpose` made it */
export function checkSignedPurpose(secret: string, given: string): void {
  const [purpose = '', signature = ''] = given.split('.')
  checkSignature(signature, signatureOf(secret, purpose))
}

/** @throws http.unauthorized */
export function checkSignature(given: string, expected: string): void {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  if (left.length !== right.length || !timingSafeEqual(left, right))
    throw new GatewayError(
      'http.unauthorized',
      'the callback URL does not have the secret of its subscription',
    )
}
