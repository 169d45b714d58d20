/**
 * Checks whether a data folder can be used, without changing it: it must be a folder, writable by this user,
 * and not writable by others. `check` reports the problem, and `run` refuses to start, because a gateway that
 * cannot write would accept connections and reject all data.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Files that the gateway writes; they may belong to another user, such as root. */
const written = ['lock', 'selvedge.db']

/** The problem as words that follow the name of the folder; undefined if there is none. */
export function folderProblem(folder: string): string | undefined {
  let existing = folder
  while (!existsSync(existing)) existing = dirname(existing)
  const facts = statSync(existing)
  const exists = existing === folder
  if (!facts.isDirectory())
    return exists ? 'is not a folder' : `cannot be created: ${existing} is not a folder`
  if (exists && (facts.mode & 0o002) !== 0) return 'is writable by other users; remove that permission'
  if (!mayWrite(existing, constants.R_OK | constants.W_OK | constants.X_OK)) {
    return exists ? 'is not writable' : `cannot be created: ${existing} is not writable`
  }
  const refusing = written.find((name) => existsSync(join(folder, name)) && !mayWrite(join(folder, name)))
  return refusing === undefined ? undefined : `contains ${refusing}, which is not writable`
}

function mayWrite(path: string, mode = constants.R_OK | constants.W_OK): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}
