/**
 * Error messages for certificates that are rejected because of their dates. Usually the clock of this machine
 * is wrong, so the message shows its time. TLS uses the system clock, even if the gateway does not trust it.
 */
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { systemClock } from './clock.ts'

/** The dates of a certificate, as it states them. */
export interface Validity {
  readonly from: string
  readonly to: string
}

const aboutDates = new Set(['CERT_NOT_YET_VALID', 'CERT_HAS_EXPIRED', 'CRL_NOT_YET_VALID', 'CRL_HAS_EXPIRED'])

/** Records the certificate that a peer presents on a new connection, before it is verified. */
export function noteCertificate(socket: Socket): () => Validity | undefined {
  let shown: Validity | undefined
  // A connection that rejected the certificate no longer returns it.
  socket.prependListener('secure', () => {
    const { valid_from: from, valid_to: to } = (socket as TLSSocket).getPeerCertificate()
    shown = { from, to }
  })
  return () => shown
}

/**
 * The message of a failed connection; errors about dates include the time and the dates of the certificate.
 */
export function messageOf(error: Error, shown?: Validity): string {
  const { code = '' } = error as NodeJS.ErrnoException
  const message = error.message === '' ? code : error.message
  if (!aboutDates.has(code)) return message
  const now = new Date(systemClock.now()).toISOString()
  const dates = shown === undefined ? '' : `; the certificate is valid from ${shown.from} to ${shown.to}`
  return `${message}: the clock of this machine says ${now}${dates}`
}
