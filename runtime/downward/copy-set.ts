/**
 * Opens the copies that the settings define, each with its subscription at the centre. Copies of removed
 * settings are deleted here; their subscriptions are deleted by the cleanup of unwanted resources.
 */
import type { Log } from '#base/register/log.ts'
import { requireSecretFile, trustedWith } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createEntityCopies } from '#store/tables/downward-notes.ts'
import type { Centre, CentreSettings } from './centre.ts'
import { type Copies, createCopies } from './copies.ts'
import { type CopySettings, copySubscriptionId } from './copy-query.ts'
import { type CopyStore, createCopyStore } from './copy-store.ts'
import type { DownwardPorts } from './downward-ports.ts'
import type { Note, Notes } from './notes.ts'

export const subscriptionAt = (
  { name, url, tokenFile, tenant }: CopySettings,
  alias: string,
): Omit<Note, 'print'> => ({
  kind: 'subscription',
  id: copySubscriptionId(alias, name),
  centre: { url, tokenFile, tenant },
})

export interface CopySetOptions {
  readonly settings: Settings
  readonly notes: Notes
  readonly centreFor: (centre: CentreSettings) => Centre
}

/** @throws config.invalid when a token file cannot be read. */
export function openCopies(
  ports: DownwardPorts,
  { settings: { copies, outbound }, notes, centreFor }: CopySetOptions,
): readonly Copies[] {
  const { alias, database, metrics, log } = ports
  const store = createCopyStore({
    rows: createEntityCopies(database),
    door: ports.door,
    broker: ports.broker,
  })
  const names = new Set(copies.map(({ name }) => name))
  void clearAway(
    store,
    [...store.names()].filter((name) => !names.has(name)),
    log,
  )
  if (copies.length > 0)
    metrics.gauge('selvedge_copies', () => copies.reduce((sum, { name }) => sum + store.count(name), 0))
  const connection = { allowsLoopback: outbound.allowLoopback, ca: trustedWith(outbound.caFile) }
  return copies.map((options) => {
    if (options.tokenFile !== undefined) requireSecretFile(options.tokenFile)
    const { id, centre } = subscriptionAt(options, alias(''))
    return createCopies(
      { ...ports, centre: centreFor(centre), store, notes },
      { options, centre, id, connection },
    )
  })
}

async function clearAway(store: CopyStore, names: readonly string[], log: Log): Promise<void> {
  try {
    for (const name of names) await store.retainOnly(name, new Set())
  } catch (error) {
    log.error('gateway.fault', { during: 'copies', error })
  }
}
