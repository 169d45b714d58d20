/**
 * Every entry of a register is used by the product: an error code nobody raises, a limit nobody obeys, a metric
 * nobody counts and a failpoint nobody passes are untrue documentation.
 */

import { limits } from '#base/limits/limits.ts'
import { errorRegister } from '#base/register/errors.ts'
import { failpointNames } from '#base/register/failpoints.ts'
import { logEvents } from '#base/register/log.ts'
import { metricRegister } from '#base/register/metrics.ts'
import type { Option } from '#cli/terminal/arguments.ts'
import { isProduct, type TreeFile } from './tree.ts'

export interface Register {
  readonly path: string
  readonly entries: readonly string[]
  /** How a use of an entry looks in code. */
  readonly use: (entry: string) => RegExp
}

const quoted = (entry: string): RegExp => new RegExp(`'${entry}'`, 'g')

export const registers: Readonly<Record<string, Register>> = {
  'error code': { path: 'runtime/base/register/errors.ts', entries: Object.keys(errorRegister), use: quoted },
  limit: {
    path: 'runtime/base/limits/limits.ts',
    entries: Object.keys(limits),
    use: (entry) => new RegExp(`\\blimits\\.${entry}\\b`, 'g'),
  },
  metric: { path: 'runtime/base/register/metrics.ts', entries: Object.keys(metricRegister), use: quoted },
  'log event': { path: 'runtime/base/register/log.ts', entries: logEvents, use: quoted },
  failpoint: { path: 'runtime/base/register/failpoints.ts', entries: failpointNames, use: quoted },
}

/** Entries of a register that no product file uses; a register's own file names each entry once already. */
export function unusedEntries(files: readonly TreeFile[], { path, entries, use }: Register): string[] {
  const product = files.filter(isProduct)
  return entries.filter((entry) => {
    const look = use(entry)
    return !product.some((one) => (one.text.match(look)?.length ?? 0) > (one.path === path ? 1 : 0))
  })
}

/** Limits that two files of the table declare: the later one would replace the other unnoticed. */
export function limitsDeclaredTwice(files: readonly TreeFile[]): string[] {
  const declared = files
    .filter(({ path }) => path.startsWith('runtime/base/limits/'))
    .flatMap(({ text }) => [...text.matchAll(/^ {2}(\w+): limit\(/gm)].map(([, name]) => name!))
  return declared.filter((name, index) => declared.indexOf(name) < index)
}

/** Options of commands that are only declared: `name: '...'`, and no setting as `path`. */
export function unreadOptions(files: readonly TreeFile[], options: readonly Option[]): string[] {
  const texts = files.filter(isProduct).filter(({ path }) => path.startsWith('runtime/cli/'))
  const isRead = (name: string): boolean =>
    texts.some(({ text }) => new RegExp(`(?<!name: )'${name}'`).test(text))
  const unread = options.filter((option) => !('path' in option) && !isRead(option.name))
  return [...new Set(unread.map(({ name }) => name))]
}
