/**
 * What keeps a data folder from being used, found without touching it: a folder that is none, rights that are missing,
 * rights that others have. `check` tells it and `run` does not start with it, since a gateway that cannot write
 * would take connections and refuse everything that comes.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Files that the gateway writes; one that somebody else made, root for instance, may refuse it. */
const written = ['lock', 'selvedge.db']

/** The problem in words that follow the name of the folder; undefined when there is none. */
export function folderProblem(folder: string): string | undefined {
  let existing = folder
  while (!existsSync(existing)) existing = dirname(existing)
  const facts = statSync(existing)
  const isMade = existing === folder
  if (!facts.isDirectory()) return isMade ? 'is no folder' : `cannot be made: ${existing} is no folder`
  if (isMade && (facts.mode & 0o002) !== 0) return 'may be written by others; take that right away'
  if (!mayWrite(existing, constants.R_OK | constants.W_OK | constants.X_OK)) {
    return isMade ? 'cannot be written' : `cannot be made: ${existing} cannot be written`
  }
  const refusing = written.find((name) => existsSync(join(folder, name)) && !mayWrite(join(folder, name)))
  return refusing === undefined ? undefined : `holds ${refusing}, which cannot be written`
}

function mayWrite(path: string, mode = constants.R_OK | constants.W_OK): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}
