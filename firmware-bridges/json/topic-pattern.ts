/**
 * Topic patterns with named levels: `site/{device}/telemetry`, `home/{device}/{field}/state`,
 * `plant/{device}/#`. A placeholder is one whole level and its name occurs once; `+` is a level without a
 * name; `#` is the tail.
 */

export interface TopicPattern {
  readonly levels: readonly Level[]
  /** Whether any further levels may follow. */
  readonly tail: boolean
}

type Level =
  | { readonly text: string; readonly name?: undefined }
  | { readonly name: string; readonly text?: undefined }

const placeholder = /^\{([a-zA-Z][a-zA-Z0-9_]{0,31})\}$/

/** @returns undefined if the text is not a pattern */
export function parseTopicPattern(text: string): TopicPattern | undefined {
  const parts = text.split('/')
  const tail = parts.at(-1) === '#'
  if (tail) parts.pop()
  const levels = parts.map(levelOf)
  const names = levels.flatMap((level) => (level?.name ? [level.name] : []))
  const isBroken = text === '' || levels.includes(undefined) || new Set(names).size < names.length
  return isBroken ? undefined : { levels: levels as Level[], tail }
}

function levelOf(text: string): Level | undefined {
  if (text === '+') return { name: '' }
  const name = placeholder.exec(text)?.[1]
  if (name !== undefined) return { name }
  return /[+#{}\0]/.test(text) ? undefined : { text }
}

/** The MQTT topic filter of all topics that match. */
export function filterOf({ levels, tail }: TopicPattern): string {
  const parts = levels.map(({ text }) => text ?? '+')
  return (tail ? [...parts, '#'] : parts).join('/')
}

/** The named levels of a topic; undefined if it does not match. A named level is never empty. */
export function matchTopic({ levels, tail }: TopicPattern, topic: string): Placeholders | undefined {
  const parts = topic.split('/')
  if (parts.length < levels.length || (parts.length > levels.length && !tail)) return undefined
  const found: Record<string, string> = {}
  for (const [index, { text, name }] of levels.entries()) {
    const part = parts[index]!
    if (text !== undefined ? part !== text : name !== '' && part === '') return undefined
    if (name) found[name] = part
  }
  return found
}

export type Placeholders = Readonly<Record<string, string>>

export const hasPlaceholder = ({ levels }: TopicPattern, name: string): boolean =>
  levels.some((level) => level.name === name)
