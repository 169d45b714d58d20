/**
 * Parses command lines: declarations of options, their given values, and the help text. All mistakes of a
 * line are reported together. It is independent of the actual commands.
 */
import { parseArgs } from 'node:util'
import { GatewayError } from '#base/register/errors.ts'
import { nearest } from '#config/schema/nearest.ts'
import type { Terminal } from './terminal.ts'

export interface Option {
  /** Long name without dashes. */
  readonly name: string
  /** Name of the value in the help; an option without it is a switch. */
  readonly value?: string
  /** Whether the option may be repeated. */
  readonly many?: boolean
  readonly summary: string
}

export interface Command {
  readonly name: string
  readonly summary: string
  /** Further lines of the help. */
  readonly details?: string
  /** Positional arguments. */
  readonly words?: {
    /** Text in the help, such as `ACTION [ID]`. */
    readonly form: string
    readonly least: number
    readonly most: number
  }
  readonly options: readonly Option[]
  /**
   * Loads the command when it is called, without the libraries of other commands. Its result is the exit
   * code.
   */
  load(): Promise<(given: GivenOptions, terminal: Terminal) => Promise<number>>
}

/** The options of a command line. */
export interface GivenOptions {
  has(name: string): boolean
  /** The value of an option; the last one if it is repeated. */
  text(name: string): string | undefined
  all(name: string): readonly string[]
  /** Positional arguments, in order. */
  readonly words: readonly string[]
}

export type ParsedOptions = { readonly given: GivenOptions } | { readonly mistakes: readonly string[] }

const helpOption: Option = { name: 'help', summary: 'Show this help' }

export function parseOptions(command: Command, args: readonly string[]): ParsedOptions {
  const options = [...command.options, helpOption]
  const known = new Map(options.map((option) => [option.name, option]))
  const types = new Map(
    options.map(({ name, value }) => [name, value === undefined ? 'boolean' : 'string'] as const),
  )
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries([...types].map(([name, type]) => [name, { type }] as const)),
      help: { type: 'boolean', short: 'h' },
    },
    strict: false,
    tokens: true,
  })
  const values = new Map<string, string[]>()
  const mistakes: string[] = []
  const words: string[] = []
  const { least = 0, most = 0, form = '' } = command.words ?? {}
  for (const token of tokens) {
    if (token.kind === 'positional' && words.push(token.value) > most)
      mistakes.push(`unexpected argument ${JSON.stringify(token.value)}`)
    if (token.kind !== 'option') continue
    const { name, rawName, value } = token
    const option = known.get(name)
    const list = values.get(name) ?? []
    if (option === undefined) mistakes.push(unknownOption(rawName, [...known.keys()]))
    else if (option.value === undefined && value !== undefined) mistakes.push(`${rawName} takes no value`)
    else if (option.value !== undefined && value === undefined)
      mistakes.push(`${rawName} needs a value, ${option.value}`)
    else if (list.length > 0 && option.many !== true && value !== undefined)
      mistakes.push(`${rawName} is given twice`)
    values.set(name, [...list, value ?? ''])
  }
  if (words.length < least) mistakes.push(`${form} is required`)
  if (mistakes.length > 0 && !values.has('help')) return { mistakes }
  return {
    given: Object.freeze({
      has: (name: string) => values.has(name),
      text: (name: string) => values.get(name)?.at(-1),
      all: (name: string) => values.get(name) ?? [],
      words,
    }),
  }
}

function unknownOption(rawName: string, names: readonly string[]): string {
  const meant = nearest(rawName, names)
  return `unknown option ${rawName}${meant === undefined ? '' : `; did you mean --${meant}?`}`
}

/** The action of a command with several. @throws cli.usage for any other word */
export function actionOf<T extends string>(word: string, actions: readonly T[]): T {
  const action = actions.find((one) => one === word)
  if (action !== undefined) return action
  const meant = nearest(word, actions)
  const hint = meant === undefined ? `actions are ${actions.join(', ')}` : `did you mean ${meant}?`
  throw new GatewayError('cli.usage', `unknown action ${word}; ${hint}`)
}

export function commandHelp({ name, summary, details, options, words }: Command): string {
  const rows = [...options, helpOption].map(({ name, value, many, summary }) => [
    `--${name}${value === undefined ? '' : ` ${value}`}${many === true ? ' ...' : ''}`,
    summary,
  ])
  return `Usage: selvedge ${name}${words === undefined ? '' : ` ${words.form}`} [OPTIONS]\n\n${summary}.\n${details === undefined ? '' : `\n${details}\n`}\nOptions:\n${table(rows)}`
}

export function overallHelp(commands: readonly Command[]): string {
  const rows = commands.map(({ name, summary }) => [name, summary])
  return [
    'Usage: selvedge COMMAND [OPTIONS]\n',
    `Commands:\n${table(rows)}`,
    'selvedge COMMAND --help shows the options of a command; selvedge --version shows the version.',
    'Exit codes: 0 success, 1 failure, 64 wrong usage, 70 internal error, 78 wrong settings or an unreadable file named by them.\n',
  ].join('\n')
}

/** Formats rows as indented lines of two columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const width = Math.max(0, ...rows.map(([first]) => first!.length))
  return rows.map(([first, second]) => `  ${first!.padEnd(width)}  ${second}\n`).join('')
}
