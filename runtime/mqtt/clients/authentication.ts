/**
 * Decides which clients may connect. A client that sends a user name needs that user's password. A client
 * without one may connect only if anonymous clients are allowed, which is the case on loopback listeners.
 */
import type { Credentials } from './connections.ts'
import type { Passwords } from './password-file.ts'

/** `passwords` is left out when there is no password file; user names are then ignored. */
export function createAuthentication(
  passwords: Passwords | undefined,
  { allowsAnonymous }: { allowsAnonymous: boolean },
): (credentials: Credentials) => boolean | Promise<boolean> {
  return ({ username, password }) => {
    if (username === undefined || passwords === undefined) return allowsAnonymous
    return passwords.verify(username, password ?? new Uint8Array())
  }
}
