/**
 * Usual value ranges and update intervals of observed properties, for sensors whose metadata declares none.
 * Pure. A label finds the entry that it resembles most; below a minimum similarity it finds none.
 */
import type { PlausibleRange } from './plausible-range.ts'

export interface UsualProperty {
  readonly label: string
  /** Undefined if any value is plausible. */
  readonly range?: PlausibleRange | undefined
  /** Time between two values, ms. */
  readonly intervalMs?: number | undefined
}

export interface UsualProperties {
  find(label: string): UsualProperty | undefined
}

/** Usual properties as settings have them, by label. */
export type UsualSettings = Readonly<
  Record<
    string,
    {
      readonly min?: number | undefined
      readonly max?: number | undefined
      readonly regexp?: string | undefined
      /** Seconds. */
      readonly updateInterval?: number | undefined
    }
  >
>

/** The table of a new installation; temperature, humidity, iaq, colour and MAC address are the originals'. */
const shipped: UsualSettings = {
  temperature: { min: -20, max: 50 },
  humidity: { min: 0, max: 100 },
  iaq: { min: 0, max: 500 },
  battery: { min: 0, max: 100 },
  pressure: { min: 300, max: 1100 },
  co2: { min: 0, max: 40_000 },
  pm10: { min: 0, max: 2000 },
  'pm2.5': { min: 0, max: 1000 },
  'wind speed': { min: 0, max: 115 },
  'wind direction': { min: 0, max: 360 },
  'colour temperature': { min: 1000, max: 20_000 },
  'mac address': { regexp: '([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}' },
  colour: { regexp: '(?i)red|orange|yellow|green|blue|violet|purple|pink|brown|black|white|gr[ae]y' },
}

/** The shipped table with the entries of the settings. One of the same label replaces the shipped one. */
export function usualTable(given: UsualSettings): UsualProperty[] {
  const labels = new Map(
    [shipped, given].flatMap((table) =>
      Object.entries(table).map(([label, entry]) => [label.trim().toLowerCase(), entry] as const),
    ),
  )
  return [...labels].map(([label, { min, max, regexp, updateInterval }]) => ({
    label,
    intervalMs: updateInterval === undefined ? undefined : updateInterval * 1000,
    range:
      regexp !== undefined
        ? { kind: 'text', regexp }
        : (min ?? max) === undefined
          ? undefined
          : { kind: 'number', min, max },
  }))
}

/** @param minimum similarity, 0..1, that a label needs. */
export function usualProperties(table: readonly UsualProperty[], minimum: number): UsualProperties {
  return {
    find(label) {
      let best: UsualProperty | undefined
      let most = 0
      for (const entry of table) {
        const alike = similarity(label, entry.label)
        if (alike >= minimum && alike > most) [best, most] = [entry, alike]
      }
      return best
    },
  }
}

/**
 * Words that do not change which values are usual: `outdoor air temperature` has those of `temperature`. Any
 * other word may mean another quantity, such as in `flow temperature`, `tyre pressure` or `battery voltage`.
 */
const neutralWords = new Set(
  [
    'air ambient atmospheric barometric room indoor indoors outdoor outdoors inside outside interior exterior',
    'relative sensor sensors probe value values reading level index concentration measurement measured',
    'current mean average avg max maximum min minimum',
  ].flatMap((line) => line.split(' ')),
)

/** A single character or a number is only the name of one of several, as in `temperature 2`. */
const isNeutral = (word: string): boolean => neutralWords.has(word) || /^(?:.|\d+)$/.test(word)

/** Similarity of a label from which neutral words were removed to one that has the remaining words. */
const neutralSimilarity = 0.95

/**
 * Similarity of two labels, 0..1: the Dice coefficient of their pairs of letters (Dice, 1945), word by word
 * without neutral words. A label with any further word is not similar.
 */
export function similarity(label: string, known: string): number {
  const targets = wordsOf(known)
  const target = targets.join('')
  const words = wordsOf(label)
  if (words.join('') === target) return 1
  const parted = wordsOf(targets.reduce((text, word) => text.replaceAll(word, ` ${word} `), words.join(' ')))
  const rest = parted.filter((word) => targets.includes(word) || !isNeutral(word))
  const scale = rest.length < parted.length ? neutralSimilarity : 1
  if (rest.length === targets.length)
    return scale * Math.min(...rest.map((word, i) => dice(word, targets[i]!)))
  return rest.length < targets.length ? scale * dice(rest.join(''), target) : 0
}

const wordsOf = (label: string): string[] =>
  label
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[\s_\-/:#]+/)
    .filter((word) => word !== '')

function dice(a: string, b: string): number {
  if (a === b) return 1
  const [pairs, others] = [pairsOf(a), pairsOf(b)]
  let shared = 0
  for (const pair of pairs) {
    const at = others.indexOf(pair)
    if (at < 0) continue
    others.splice(at, 1)
    shared++
  }
  const all = Math.max(0, a.length - 1) + Math.max(0, b.length - 1)
  return all === 0 ? 0 : (2 * shared) / all
}

const pairsOf = (text: string): string[] =>
  Array.from({ length: Math.max(0, text.length - 1) }, (_, i) => text.slice(i, i + 2))
