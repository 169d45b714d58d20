/**
 * Usual value ranges of observed properties, for sensors whose metadata declares none. Pure. A label finds
 * the entry that it resembles most; below a minimum similarity it finds none.
 */
import type { PlausibleRange } from './plausible-range.ts'

export interface UsualProperty extends PlausibleRange {
  /** Lower-case label. */
  readonly label: string
}

export interface UsualProperties {
  rangeOf(label: string): PlausibleRange | undefined
}

/** The table of a new installation; temperature, humidity and iaq are those of the original component. */
export const shippedProperties: readonly UsualProperty[] = [
  { label: 'temperature', kind: 'number', min: -20, max: 50 },
  { label: 'humidity', kind: 'number', min: 0, max: 100 },
  { label: 'iaq', kind: 'number', min: 0, max: 500 },
  { label: 'battery', kind: 'number', min: 0, max: 100 },
  { label: 'pressure', kind: 'number', min: 300, max: 1100 },
  { label: 'co2', kind: 'number', min: 0, max: 40_000 },
  { label: 'pm10', kind: 'number', min: 0, max: 2000 },
  { label: 'pm2.5', kind: 'number', min: 0, max: 1000 },
  { label: 'wind speed', kind: 'number', min: 0, max: 115 },
  { label: 'wind direction', kind: 'number', min: 0, max: 360 },
  { label: 'mac address', kind: 'text', regexp: '([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}' },
]

/** @param minimum similarity, 0..1, that a label needs. */
export function usualProperties(table: readonly UsualProperty[], minimum: number): UsualProperties {
  return {
    rangeOf(label) {
      const [best] = table
        .map((entry) => ({ entry, similarity: similarity(label, entry.label) }))
        .sort((a, b) => b.similarity - a.similarity)
      return best !== undefined && best.similarity >= minimum ? best.entry : undefined
    },
  }
}

/**
 * Similarity of two labels, 0..1: the Dice coefficient of their pairs of letters (Dice, 1945), or of the best
 * word of the first, so that `air temperature` resembles `temperature`.
 */
export function similarity(label: string, known: string): number {
  const words = wordsOf(label)
  const whole = words.join('')
  const target = wordsOf(known).join('')
  return Math.max(dice(whole, target), ...words.map((word) => dice(word, target) * 0.95))
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
