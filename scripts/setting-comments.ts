/**
 * Reads the documentation of the settings from the comments of their schema. The comment of an entry reads
 * "TITLE. DESCRIPTION".
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A constant of the schema or an entry of a group: its comment, its code, and the entries if it is a group. */
interface Declared {
  readonly comment: string
  readonly code: string
  readonly entries: readonly (readonly [name: string, entry: Declared])[]
}

const constantPattern = /^(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?(?:export )?const (\w+) = ([\s\S]*)$/
const entryPattern =
  /^ {2}(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n {2})?((?:\.\.\.)?\w+|'[\w-]+')(.*(?:\n(?! {2}[\w/.']|}).*)*)/gm

const constants = new Map(
  globSync(join(import.meta.dirname, '../runtime/config/schema/*-schema.ts'))
    .flatMap((path) => readFileSync(path, 'utf8').split('\n\n'))
    .map((block) => constantPattern.exec(block))
    .filter((match) => match !== null)
    .map(([, comment, name, code]): [string, Declared] => [name!, declared(comment, code!)]),
)

const comments = new Map<string, string>()
collect('', constants.get('settingsSchema')!)

/** Whether a path has documentation. Every setting must; a group may. */
export function isDocumented(path: string): boolean {
  return comments.has(keyOf(path))
}

/** The documentation of a setting by its path, in which `*` is any name and `[]` any item of a list. */
export function settingComment(path: string): { title: string; description: string } {
  const comment = comments.get(keyOf(path)) ?? ''
  const [, title, description] = /^(.*?)\. (.*\.)$/.exec(comment) ?? []
  if (title === undefined || description === undefined)
    throw new Error(`the comment of the setting ${path} must read "TITLE. DESCRIPTION."`)
  return { title, description }
}

function keyOf(path: string): string {
  return path.replaceAll(/(?:\[\]|\.\*)\./g, '.')
}

function declared(comment: string | undefined, code: string): Declared {
  const isGroup = /^.*\{\n/.test(code)
  const entries = isGroup ? Array.from(code.matchAll(entryPattern), entryOf) : []
  return { comment: (comment ?? '').replace(/\s+(?:\* )?/g, ' ').trim(), code, entries }
}

function entryOf([, comment, name, rest]: readonly string[]): readonly [string, Declared] {
  return [name!.replaceAll("'", ''), declared(comment, rest!.startsWith(':') ? rest! : name!)]
}

/** Collects the comments below a path; that of the values of a map has the path of the map and `.*`. */
function collect(path: string, { comment, code, entries }: Declared): void {
  if (comment !== '') comments.set(comments.has(path) ? `${path}.*` : path, comment)
  for (const [name, entry] of entries) {
    if (name.startsWith('...')) collect(path, { ...named(name)!, comment: '' })
    else collect(path === '' ? name : `${path}.${name}`, entry)
  }
  const constant = entries.length === 0 ? named(code) : undefined
  if (constant !== undefined) collect(path, constant)
}

/** The first constant of the schema that stands in some code. */
function named(code: string): Declared | undefined {
  const names = code.replaceAll(/'[^']*'/g, '').match(/(?<!\w\.)\b[a-z]\w*\b(?![.:])/gi) ?? []
  return names.map((name) => constants.get(name)).find((one) => one !== undefined)
}
