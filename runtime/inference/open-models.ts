/** Opens the models of a gateway: those that are shipped with the program, and those in its data folder. */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Instruments } from '#base/process/instruments.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createModels, type Models } from './models.ts'

export interface ModelParts extends Instruments {
  readonly opened: AsyncDisposableStack
  readonly settings: Pick<Settings, 'data' | 'models'>
  readonly contexts: { readonly unnamed: { readonly expand: (name: string) => string } }
}

/** Folder of the shipped models: beside `runtime` in a checkout, beside `dist` in a deployment. */
const shipped = join(
  dirname(fileURLToPath(import.meta.url)),
  import.meta.url.endsWith('.ts') ? '../../models' : '../models',
)

export async function openModels({
  opened,
  settings,
  contexts,
  ...instruments
}: ModelParts): Promise<Models> {
  const { data, models } = settings
  const all = createModels(
    { ...instruments, expand: contexts.unnamed.expand },
    { isEnabled: models.enabled, shipped, uploaded: join(data, 'models'), assign: models.assign },
  )
  opened.defer(all.close)
  await all.start()
  return all
}
