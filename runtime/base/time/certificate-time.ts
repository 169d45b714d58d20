/**
 * What is told when a certificate is refused for its dates: mostly it is the clock of this machine that is wrong, and
 * nobody finds that without reading what it says. TLS goes by the clock of the system, whatever ours is.
 */
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { systemClock } from './clock.ts'

/** The dates of a certificate, as it has them. */
export interface Validity {
  readonly from: string
  readonly to: string
}

const aboutDates = new Set(['CERT_NOT_YET_VALID', 'CERT_HAS_EXPIRED', 'CRL_NOT_YET_VALID', 'CRL_HAS_EXPIRED'])

/** Notes the certificate that a peer shows on a new connection, before it is judged. */
export function noteCertificate(socket: Socket): () => Validity | undefined {
  let shown: Validity | undefined
  // Once it is refused the connection knows nothing of it any more.
  socket.prependListener('secure', () => {
    const { valid_from: from, valid_to: to } = (socket as TLSSocket).getPeerCertificate()
    shown = { from, to }
  })
  return () => shown
}

/** The message of a failed connection, with what clock and certificate say where it is about dates. */
export function messageOf(error: Error, shown?: Validity): string {
  const { code = '' } = error as NodeJS.ErrnoException
  const message = error.message === '' ? code : error.message
  if (!aboutDates.has(code)) return message
  const now = new Date(systemClock.now()).toISOString()
  const dates = shown === undefined ? '' : `; the certificate is valid from ${shown.from} to ${shown.to}`
  return `${message}: the clock of this machine says ${now}${dates}`
}
