/**
 * The path language: `a.b[0].c`, `["odd key"].d`, with a leading `$` for the whole payload if the path would
 * otherwise start at an item. A path identifies one position; a missing position is undefined. Works on any
 * JSON.
 */

export interface Path {
  /** Whether it starts at the payload, even inside an item. */
  readonly fromRoot: boolean
  readonly steps: readonly (string | number)[]
}

const charactersMax = 256
const step = /\.?([^.[\]"]+)|\[(\d{1,6})\]|\["((?:[^"\\]|\\.)*)"\]/y

/** @returns undefined if the text is not a path */
export function parsePath(text: string): Path | undefined {
  if (text.length > charactersMax) return undefined
  const fromRoot = text === '$' || text.startsWith('$.') || text.startsWith('$[')
  const rest = fromRoot ? text.slice(1) : text
  const steps: (string | number)[] = []
  if (!fromRoot && (rest === '' || rest.startsWith('.'))) return undefined
  step.lastIndex = 0
  while (step.lastIndex < rest.length) {
    const start = step.lastIndex
    const match = step.exec(rest)
    if (match === null) return undefined
    const [whole, name, index, quoted] = match
    // A bare name requires its dot, except as the first step.
    if (name !== undefined && start > 0 && !whole.startsWith('.')) return undefined
    steps.push(name ?? (index === undefined ? unescaped(quoted!) : Number(index)))
  }
  return { fromRoot, steps }
}

const unescaped = (quoted: string): string => quoted.replace(/\\(.)/g, '$1')

/** The value at the path, starting at the item or at the whole payload. */
export function valueAt({ fromRoot, steps }: Path, item: unknown, payload: unknown): unknown {
  let value = fromRoot ? payload : item
  for (const one of steps) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, one)) return undefined
    value = (value as Readonly<Record<string | number, unknown>>)[one]
  }
  return value
}

/** The member of the item at which the path begins, if it begins at the item. */
export function firstMember({ fromRoot, steps }: Path): string | undefined {
  const [first] = steps
  return fromRoot || typeof first !== 'string' ? undefined : first
}

/** The last name in the path, used as the field's name. */
export function lastName({ steps }: Path): string | undefined {
  return steps.findLast((one): one is string => typeof one === 'string')
}
