/**
 * The copies that the settings name: each with its subscription over there. What a setting brought that is not there any more
 * is removed here; its subscription is undone with all else that nobody wants.
 */
import type { Log } from '#base/register/log.ts'
import { requireSecretFile, trustedWith } from '#config/load/http-token.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createEntityCopies } from '#store/tables/downward-notes.ts'
import type { Centre, CentreSettings } from './centre.ts'
import { type Copies, createCopies } from './copies.ts'
import { createShelf, type Shelf } from './copy-shelf.ts'
import { type CopySettings, copySubscriptionId } from './copy-wish.ts'
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

/** @throws config.invalid when the file of a token cannot be read. */
export function openCopies(
  ports: DownwardPorts,
  { settings: { copies, outbound }, notes, centreFor }: CopySetOptions,
): readonly Copies[] {
  const { alias, database, metrics, log } = ports
  const shelf = createShelf({ ...ports, rows: createEntityCopies(database) })
  const names = new Set(copies.map(({ name }) => name))
  void clearAway(
    shelf,
    [...shelf.names()].filter((name) => !names.has(name)),
    log,
  )
  if (copies.length > 0)
    metrics.gauge('selvedge_copies', () => copies.reduce((sum, { name }) => sum + shelf.count(name), 0))
  const connection = { allowsLoopback: outbound.allowLoopback, ca: trustedWith(outbound.caFile) }
  return copies.map((wish) => {
    if (wish.tokenFile !== undefined) requireSecretFile(wish.tokenFile)
    const { id, centre } = subscriptionAt(wish, alias(''))
    return createCopies(
      { ...ports, centre: centreFor(centre), shelf, notes },
      { wish, centre, id, connection },
    )
  })
}

async function clearAway(shelf: Shelf, names: readonly string[], log: Log): Promise<void> {
  try {
    for (const name of names) await shelf.keepOnly(name, new Set())
  } catch (error) {
    log.error('gateway.fault', { during: 'copies', error })
  }
}
