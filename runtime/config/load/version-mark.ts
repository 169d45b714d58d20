/**
 * Which version last ran on a data folder, in the file `version` there: for whoever finds the folder later. Nothing
 * depends on it, so a folder without it is as good; what decides is the format that each database states.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { productToken } from '#base/register/version.ts'

const fileOf = (dataFolder: string): string => join(dataFolder, 'version')

/** Leaves the mark of the running version. A disk that is full keeps the old one. */
export function markVersion(dataFolder: string): void {
  if (markedVersion(dataFolder) === productToken) return
  try {
    writeFileSync(fileOf(dataFolder), `${productToken}\n`)
  } catch {
    // The gateway runs without it.
  }
}

/** Such as `selvedge/1.2.3`; undefined where no version left its mark. */
export function markedVersion(dataFolder: string): string | undefined {
  try {
    return readFileSync(fileOf(dataFolder), 'utf8').trim()
  } catch {
    return undefined
  }
}
