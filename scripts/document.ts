/**
 * Writes the reference pages under docs/reference from the registers of the code. Pages are never edited by
 * hand; a tidy test asserts that they are fresh.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { errorRegister } from '#base/register/errors.ts'
import { logEvents } from '#base/register/log.ts'
import { type MetricName, metricKind, metricRegister } from '#base/register/metrics.ts'
import { apiPage } from './api-page.ts'
import { commandsPage } from './commands-page.ts'
import { compatPage } from './compat-page.ts'
import { settingsJsonSchema } from './settings-json-schema.ts'
import { settingsExample, settingsPage } from './settings-pages.ts'

/** Every generated page: path from the top of the repository to its text. */
export function referencePages(): ReadonlyMap<string, string> {
  return new Map([
    ['docs/reference/errors.md', errorsPage()],
    ['docs/reference/limits.md', limitsPage()],
    ['docs/reference/metrics.md', metricsPage()],
    ['docs/reference/events.md', eventsPage()],
    ['docs/reference/settings.md', settingsPage()],
    ['docs/reference/selvedge.schema.json', settingsJsonSchema()],
    ['docs/reference/commands.md', commandsPage()],
    ['docs/reference/api.md', apiPage()],
    ['docs/compat.md', compatPage()],
    ['deploy/config/selvedge.example.yaml', settingsExample()],
  ])
}

function errorsPage(): string {
  const rows = Object.entries(errorRegister).map(([code, { fault, retry, status, hint }]) => [
    `\`${code}\``,
    fault,
    retry,
    String(status),
    hint,
  ])
  return page(
    'Errors',
    'Every error code of the gateway. *Fault* is the party that has to act, *retry* is whether the same request may ' +
      'succeed later, *status* is the HTTP status of the response.',
    'runtime/base/register/errors.ts',
    ['Code', 'Fault', 'Retry', 'Status', 'What to do'],
    rows,
  )
}

function limitsPage(): string {
  const comments = commentsIn('runtime/base/limits/**/*limits.ts', /(\w+): limit\(/)
  const rows = Object.entries(limits).map(([name, { value, unit }]) => {
    const [, reason, beyond] = /^(.*)\. Beyond it: (.*)\.$/.exec(comments.get(name) ?? '') ?? []
    if (reason === undefined || beyond === undefined)
      throw new Error(`the comment of the limit ${name} must read "REASON. Beyond it: CONSEQUENCE."`)
    return [`\`${name}\``, `${value.toLocaleString('en')} ${unit}`, reason, beyond]
  })
  return page(
    'Limits',
    'Every ceiling of the gateway: every queue, cache, buffer and response is bounded.',
    'runtime/base/limits/limits.ts',
    ['Name', 'Value', 'Why', 'Beyond it'],
    rows,
  )
}

/** The comments of the entries of a register, by name, each as one line. */
function commentsIn(files: string, entry: RegExp): ReadonlyMap<string, string> {
  const paths = globSync(join(import.meta.dirname, '..', files))
  const source = paths.map((path) => readFileSync(path, 'utf8')).join('\n')
  const entries = source.matchAll(new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\s+${entry.source}`, 'g'))
  return new Map(
    Array.from(entries, ([, comment, name]) => [name!, comment!.replace(/\s+(?:\* )?/g, ' ').trim()]),
  )
}

function metricsPage(): string {
  const rows = Object.entries(metricRegister).map(([name, help]) => [
    `\`${name}\``,
    metricKind(name as MetricName),
    help,
  ])
  return page(
    'Metrics',
    '`GET /metrics` shows these in the Prometheus text format.',
    'runtime/base/register/metrics.ts',
    ['Name', 'Kind', 'Meaning'],
    rows,
  )
}

function eventsPage(): string {
  const comments = commentsIn('runtime/base/register/log.ts', /'([\w.-]+)',/)
  const rows = logEvents.map((event) => {
    const meaning = comments.get(event)
    if (meaning === undefined) throw new Error(`the log event ${event} needs a comment`)
    return [`\`${event}\``, meaning]
  })
  return page(
    'Log events',
    'Every line of the log is one JSON object with `at`, `level`, `event` and facts; `event` is one of these.',
    'runtime/base/register/log.ts',
    ['Event', 'Meaning'],
    rows,
  )
}

function page(title: string, lead: string, source: string, head: string[], rows: string[][]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(escapeCell).join(' | ')} |`
  const table = [line(head), line(head.map(() => '---')), ...rows.map(line)]
  return `# ${title}\n\n${lead}\n\nGenerated from \`${source}\` by \`npm run document\`.\n\n${table.join('\n')}\n`
}

const escapeCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')

if (import.meta.main) {
  for (const [path, text] of referencePages()) {
    const target = join(import.meta.dirname, '..', path)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text)
  }
}
