/** The shipped models pass the checks of the gateway, are small, and have a card with data, method and limits. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadModel } from '#inference/child/loaded-model.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'

const top = join(import.meta.dirname, '../../models')
const folders = readdirSync(top).filter((name) => name !== 'train')
const bytesMax = 1024 * 1024

describe('the shipped models', () => {
  it.each(folders)('%s passes the checks, with its golden vectors in the ONNX runtime', async (name) => {
    const folder = join(top, name)
    const model = await loadModel(folder, await readModelDocument(folder))
    await model.unload()
  })

  it.each(folders)('%s has a card that states data, method, evaluation and limits', (name) => {
    const card = readFileSync(join(top, name, 'card.md'), 'utf8')
    for (const part of ['Data', 'Method', 'Evaluation', 'Limits']) expect(card).toContain(`\n## ${part}\n`)
  })

  it('have less than 1 MB together', () => {
    const sizes = folders.flatMap((name) =>
      readdirSync(join(top, name)).map((file) => statSync(join(top, name, file)).size),
    )
    expect(sizes.length).toBeGreaterThan(0)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(bytesMax)
  })
})
