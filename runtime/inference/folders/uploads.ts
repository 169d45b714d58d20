/**
 * Stores and removes uploaded model folders. A folder is complete and checked before it gets its name. A
 * kill at any time leaves the old model or the new one.
 */
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { ModelDocument } from '#config/schema/model-schema.ts'
import { modelFiles } from './folder-scan.ts'
import { readModelDocument } from './model-folder.ts'

/** Contents by file name: those of `modelFiles`. */
export type UploadedFiles = ReadonlyMap<string, Uint8Array>

/** Names of unfinished folders; the scan ignores them, since no model has such a name. */
const unfinished = '.unfinished'

/**
 * @param options.check throws if the model in a folder must not be used.
 * @throws model.invalid
 */
export async function storeUpload(
  files: UploadedFiles,
  { folder, check }: UploadOptions,
): Promise<ModelDocument> {
  const trial = join(folder, `${unfinished}-new`)
  const old = join(folder, `${unfinished}-old`)
  await rm(trial, { recursive: true, force: true })
  await mkdir(trial, { recursive: true, mode: 0o700 })
  try {
    for (const name of modelFiles) await writeFile(join(trial, name), files.get(name)!, { flush: true })
    const document = await readModelDocument(trial, { anyName: true })
    await check(trial, document)
    const place = join(folder, document.name)
    await rm(old, { recursive: true, force: true })
    if ((await readdir(folder)).includes(document.name)) await rename(place, old)
    await rename(trial, place)
    await rm(old, { recursive: true, force: true })
    return document
  } catch (error) {
    if (!isGatewayError(error)) throw error
    throw new GatewayError(error.code, error.message.replaceAll(`${trial}/`, '').replaceAll(`${trial}: `, ''))
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}

/** After a kill between the two renames, gives the old folder its name again. */
export async function recoverUploads(folder: string): Promise<void> {
  const old = join(folder, `${unfinished}-old`)
  try {
    const { name } = await readModelDocument(old, { anyName: true })
    if (!(await readdir(folder)).includes(name)) await rename(old, join(folder, name))
  } catch (error) {
    // There is no old folder, or nothing usable in it.
    if (!isGatewayError(error, 'model.invalid')) throw error
  }
}

export interface UploadOptions {
  /** Folder of all uploaded models. */
  readonly folder: string
  check(folder: string, document: ModelDocument): Promise<void>
}

export async function removeUpload(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
}
