/** Reads `model.json` of a model folder. The inference process checks the other files. */
import { lstat, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { parseModelDocument } from '#config/checks/model-mistakes.ts'
import type { ModelDocument } from '#config/schema/model-schema.ts'

/** @throws model.invalid with all mistakes of the file. */
export async function readModelDocument(
  folder: string,
  { anyName = false }: { readonly anyName?: boolean } = {},
): Promise<ModelDocument> {
  const path = join(folder, 'model.json')
  const parsed = parseModelDocument(await textOf(path), {
    folder: anyName ? undefined : basename(folder),
    source: path,
  })
  if (parsed.mistakes === undefined) return parsed.document
  throw new GatewayError('model.invalid', parsed.mistakes.join('\n'))
}

async function textOf(path: string): Promise<string> {
  try {
    const { size } = await statusOf(path)
    const most = limits.modelDocumentBytes.value
    if (size > most)
      throw new GatewayError('model.invalid', `${path} has ${size} bytes, at most ${most} are allowed`)
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof GatewayError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new GatewayError(
      'model.invalid',
      `${path} ${code === 'ENOENT' ? 'is missing' : `cannot be read (${code})`}`,
    )
  }
}

async function statusOf(path: string) {
  const status = await lstat(path)
  if (!status.isFile()) throw new GatewayError('model.invalid', `${path}: expected a regular file`)
  return status
}
