/**
 * `selvedge queue ls|retry|drop` (default ls): lists the dead letters and refused changes of a running
 * gateway with their reasons, retries them, or drops them.
 */
import { GatewayError } from '#base/register/errors.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { actionOf, type GivenOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { findGateway, type RunningGateway, refusalOf } from './running-gateway.ts'

interface Item {
  readonly id: string
  readonly subscription?: string
  readonly entity?: string
  readonly givenUpAt: string
  readonly reason: string
}

const path = '/selvedge/v1/queue'
const pageSize = 1000

export async function queue(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [word = 'ls', ...ids] = given.words
  const action = actionOf(word, ['ls', 'retry', 'drop'])
  if (action === 'ls' && ids.length > 0) throw new GatewayError('cli.usage', 'ls takes no IDs')
  if (action !== 'ls' && ids.length === 0 && !given.has('all'))
    throw new GatewayError('cli.usage', `${action} needs IDs of the list, or --all`)
  const limit = Number(given.text('limit') ?? 100)
  if (!Number.isInteger(limit) || limit < 1)
    throw new GatewayError('cli.usage', '--limit expects a whole number above 0')
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const gateway = await findGateway(given, loaded.settings)
  const wanted = (item: Item): boolean =>
    given.text('subscription') === undefined || item.subscription === given.text('subscription')
  if (action === 'ls') return list(gateway, { limit, wanted, isJson: given.has('json') }, terminal)
  const chosen =
    ids.length > 0 ? ids : (await read(gateway, Number.POSITIVE_INFINITY, wanted)).items.map(({ id }) => id)
  return each(gateway, { action, ids: chosen, isJson: given.has('json') }, terminal)
}

async function read(
  gateway: RunningGateway,
  limit: number,
  wanted: (item: Item) => boolean,
): Promise<{ count: number; items: Item[] }> {
  const items: Item[] = []
  let count = 0
  for (let offset = 0; items.length < limit; offset += pageSize) {
    const answer = await gateway.request(`${path}?limit=${pageSize}&offset=${offset}`)
    if (answer.status !== 200) throw refusalOf(answer, 'listing the queue')
    const page = JSON.parse(answer.text) as { count: number; items: Item[] }
    count = page.count
    items.push(...page.items.filter(wanted))
    if (page.items.length < pageSize) break
  }
  return { count, items: items.slice(0, limit) }
}

async function list(
  gateway: RunningGateway,
  { limit, wanted, isJson }: { limit: number; wanted: (item: Item) => boolean; isJson: boolean },
  terminal: Terminal,
): Promise<number> {
  const found = await read(gateway, limit, wanted)
  if (isJson) terminal.out(`${JSON.stringify(found, undefined, 2)}\n`)
  else if (found.items.length === 0) terminal.out('The queue is empty.\n')
  else {
    for (const { id, givenUpAt, subscription = 'deleted', entity = '', reason } of found.items)
      terminal.out(`${id}  ${givenUpAt}  ${subscription}  ${entity}\n  ${reason}\n`)
    if (found.count > found.items.length) terminal.out(`${found.items.length} of ${found.count}\n`)
  }
  return exitCodes.ok
}

async function each(
  gateway: RunningGateway,
  { action, ids, isJson }: { action: 'retry' | 'drop'; ids: readonly string[]; isJson: boolean },
  terminal: Terminal,
): Promise<number> {
  const failed: { id: string; reason: string }[] = []
  for (const id of ids) {
    const at = `${path}/${encodeURIComponent(id)}`
    const answer = await (action === 'drop'
      ? gateway.request(at, { method: 'DELETE' })
      : gateway.request(`${at}/retry`, { method: 'POST' }))
    if (answer.status !== 204) failed.push({ id, reason: refusalOf(answer, id).message })
  }
  const done = ids.length - failed.length
  const word = action === 'drop' ? 'dropped' : 'retried'
  if (isJson) terminal.out(`${JSON.stringify({ done, failed }, undefined, 2)}\n`)
  else {
    for (const { reason } of failed) terminal.err(`${reason}\n`)
    terminal.out(`${done} of ${ids.length} ${word}\n`)
  }
  return failed.length > 0 ? exitCodes.failure : exitCodes.ok
}
