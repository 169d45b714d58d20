/** A disk that answers no question about the log ends nothing: whoever looks is told that it is short, until a later look. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPluginLog } from './plugin-log.ts'

it('a log that cannot be looked at is looked at again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-plugin-log-'))
  const file = join(folder, 'a.db')
  // As with EIO, the question itself fails.
  symlinkSync(`${file}-wal`, `${file}-wal`)
  const log = createPluginLog(file, { database: () => expect.unreachable(), copyBack: async () => true })
  expect(() => log.look()).not.toThrow()
  await log.wait()
  await log.close()
  rmSync(folder, { recursive: true })
})
