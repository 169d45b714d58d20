/**
 * What is wrong with the settings, one value per mistake, and how it is told to a person. Values that may be
 * secret are never repeated: neither what stands under a name like password or token, nor the user part of a URL.
 */

export interface Mistake {
  /** Where in the settings, such as `http.port` or `bridgeIn[0].url`; empty for the whole. */
  readonly path: string
  /** What stands there, as JSON text fit to be printed; undefined where nothing does. */
  readonly value?: string | undefined
  /** What has to be there, in words. */
  readonly expected: string
  /** The name that was probably meant. */
  readonly nearest?: string | undefined
  /** Where it was said: a file, a variable, a flag. */
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

/** The value at a place as one short line that holds no secret. */
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

/** The mistake at a place of a tree, with the value that stands there. */
export function mistakeAt(
  root: unknown,
  keys: Keys,
  words: Pick<Mistake, 'expected' | 'source' | 'nearest'>,
): Mistake {
  const value = keys.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], root)
  return { path: pathText(keys), value: shown(value, keys), ...words }
}

/** One line: place, value, what was expected, the nearest name, where it was said. */
export function mistakeLine(mistake: Mistake): string {
  const what = [mistake.path, mistake.value].filter((part) => part !== undefined && part !== '').join(': ')
  const hint = mistake.nearest === undefined ? '' : `; did you mean ${mistake.nearest}?`
  return `${what === '' ? '' : `${what}: `}expected ${mistake.expected}${hint} (${mistake.source})`
}
