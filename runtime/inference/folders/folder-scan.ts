/**
 * Finds the model folders in the folders of shipped and uploaded models, and what changed since the last
 * time. An uploaded model replaces a shipped one of the same name.
 */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'

export type ModelSource = 'shipped' | 'uploaded'

export interface FoundFolder {
  readonly name: string
  readonly folder: string
  readonly source: ModelSource
  /** Changes whenever one of its files does. */
  readonly stamp: string
}

export const modelFiles = ['model.json', 'model.onnx', 'golden.json', 'card.md'] as const

/** Model folders by name, at most `limits.modelsMax`. @param places folders that hold model folders. */
export async function findModels(
  places: Readonly<Record<ModelSource, string>>,
): Promise<ReadonlyMap<string, FoundFolder>> {
  const found = new Map<string, FoundFolder>()
  for (const source of ['uploaded', 'shipped'] as const) {
    for (const name of await folderNames(places[source])) {
      if (found.size >= limits.modelsMax.value || found.has(name)) continue
      const folder = join(places[source], name)
      const stamp = await stampOf(folder)
      if (stamp !== undefined) found.set(name, { name, folder, source, stamp })
    }
  }
  return found
}

async function folderNames(place: string): Promise<string[]> {
  try {
    const entries = await readdir(place, { withFileTypes: true })
    return entries
      .filter((entry) => entry.isDirectory() && /^[a-z][a-z0-9-]{0,63}$/.test(entry.name))
      .map(({ name }) => name)
      .toSorted()
  } catch {
    // Most gateways have no uploaded models, and a checkout may have no shipped ones.
    return []
  }
}

/** Undefined for a folder without model.json, which holds no model. */
async function stampOf(folder: string): Promise<string | undefined> {
  const stamps = await Promise.all(
    modelFiles.map(async (file) => {
      try {
        const { size, mtimeMs, ino } = await lstat(join(folder, file))
        return `${size} ${mtimeMs} ${ino}`
      } catch {
        return ''
      }
    }),
  )
  return stamps[0] === '' ? undefined : stamps.join(',')
}
