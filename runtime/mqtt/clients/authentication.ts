/**
 * Who may connect: whoever names a user must have that user's password; whoever names none may come in only where
 * anonymous clients are allowed, which is on listeners of this machine itself. Identity and policies come later.
 */
import type { Credentials } from './connections.ts'
import type { Passwords } from './password-file.ts'

/** `passwords` is left out where there is no file; a name then counts for nothing. */
export function createAuthentication(
  passwords: Passwords | undefined,
  { allowsAnonymous }: { allowsAnonymous: boolean },
): (credentials: Credentials) => boolean | Promise<boolean> {
  return ({ username, password }) => {
    if (username === undefined || passwords === undefined) return allowsAnonymous
    return passwords.verify(username, password ?? new Uint8Array())
  }
}
