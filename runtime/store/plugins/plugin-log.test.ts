/** If the disk fails when the WAL size is checked, the WAL counts as short until a later check. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPluginLog } from './plugin-log.ts'

it('a WAL whose size cannot be checked is checked again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-plugin-log-'))
  const file = join(folder, 'a.db')
  // As with EIO, the check itself fails.
  symlinkSync(`${file}-wal`, `${file}-wal`)
  const log = createPluginLog(file, { database: () => expect.unreachable(), copyBack: async () => true })
  expect(() => log.look()).not.toThrow()
  await log.wait()
  await log.close()
  rmSync(folder, { recursive: true })
})
