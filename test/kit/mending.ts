/** What tenants need to be opened over a folder of a test: a damaged database stays as it is, and closed. */
import { join } from 'node:path'
import type { Log } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import type { TenantsPorts } from '#broker/tenant/tenants.ts'
import { createRepair } from '#broker/upkeep/repair.ts'

export function unmended(
  dataFolder: string,
  log: Log,
): Pick<TenantsPorts, 'dataFolder' | 'repair' | 'onRepairable'> {
  const settings = { dataFolder, backupFolder: join(dataFolder, 'backups'), isAutomatic: false }
  return { dataFolder, repair: createRepair({ clock: systemClock, log }, settings), onRepairable() {} }
}
