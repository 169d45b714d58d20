/**
 * Records the version that last ran on a data folder in the file `version`, as information for operators. The
 * gateway does not depend on it; the format number in each database decides compatibility.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { productToken } from '#base/register/version.ts'

const fileOf = (dataFolder: string): string => join(dataFolder, 'version')

/** Records the running version. If the disk is full, the old version remains. */
export function markVersion(dataFolder: string): void {
  if (markedVersion(dataFolder) === productToken) return
  try {
    writeFileSync(fileOf(dataFolder), `${productToken}\n`)
  } catch {
    // The gateway works without this file.
  }
}

/** The recorded version, such as `selvedge/1.2.3`; undefined if there is none. */
export function markedVersion(dataFolder: string): string | undefined {
  try {
    return readFileSync(fileOf(dataFolder), 'utf8').trim()
  } catch {
    return undefined
  }
}
