/**
 * Mistakes in the settings and their text for an operator. Values that may be secret are never shown: neither
 * values of names like password or token, nor the user part of a URL.
 */

export interface Mistake {
  /** Path in the settings, such as `http.port` or `bridgeIn[0].url`; empty for the settings as a whole. */
  readonly path: string
  /** The value there, as printable JSON text; undefined if there is none. */
  readonly value?: string | undefined
  /** Description of the expected value. */
  readonly expected: string
  /** The name that the operator probably meant. */
  readonly nearest?: string | undefined
  /** The source of the value: a file, an environment variable, or a flag. */
  readonly source: string
}

export type Keys = readonly (string | number)[]

const shownCharactersMax = 80
const secretName = /pass|secret|token|credential/i

/** `a.b[0]["odd name"]`. */
export function pathText(keys: Keys): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`
    if (!/^[A-Za-z0-9_-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`
    return path === '' ? key : `${path}.${key}`
  }, '')
}

/** A value as one short line without secrets. */
export function shown(value: unknown, keys: Keys): string | undefined {
  if (value === undefined) return undefined
  if (
    keys.some((key) => /pass|secret|token|credential/i.test(String(key))) &&
    !/file$/i.test(String(keys.at(-1)))
  ) {
    return '(hidden)'
  }
  const hide = (name: string, member: unknown): unknown => (secretName.test(name) ? '(hidden)' : member)
  const text = JSON.stringify(value, hide)
  const open = text.replace(/(\/\/)[^/@\s"]*@/g, '$1(hidden)@')
  return open.length > shownCharactersMax ? `${open.slice(0, shownCharactersMax)}...` : open
}

/** The mistake at a path of a tree, with the value at that path. */
export function mistakeAt(
  root: unknown,
  keys: Keys,
  words: Pick<Mistake, 'expected' | 'source' | 'nearest'>,
): Mistake {
  const value = keys.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], root)
  return { path: pathText(keys), value: shown(value, keys), ...words }
}

/** The text of a mistake: path, value, expected value, nearest name, source. */
export function mistakeLine(mistake: Mistake): string {
  const what = [mistake.path, mistake.value].filter((part) => part !== undefined && part !== '').join(': ')
  const hint = mistake.nearest === undefined ? '' : `; did you mean ${mistake.nearest}?`
  return `${what === '' ? '' : `${what}: `}expected ${mistake.expected}${hint} (${mistake.source})`
}
