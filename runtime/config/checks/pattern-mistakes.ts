/**
 * Checks regular expressions of settings. This room does not import NGSI-LD, so the check is a port; its
 * findings become ordinary mistakes.
 */
import { type Keys, type Mistake, mistakeAt } from '#config/schema/mistakes.ts'
import type { Settings } from '#config/schema/settings-schema.ts'

/** Returns what is wrong with a regular expression; undefined if it can be used. */
export type PatternCheck = (regexp: string) => string | undefined

export function patternMistakes(
  settings: Settings,
  check: PatternCheck,
  sourceOf: (keys: Keys) => string,
): Mistake[] {
  return Object.entries(settings.quality.usualProperties).flatMap(([label, { regexp }]) => {
    const problem = regexp === undefined ? undefined : check(regexp)
    if (problem === undefined) return []
    const keys = ['quality', 'usualProperties', label, 'regexp']
    const expected = `a regular expression (${problem})`
    return mistakeAt(settings, keys, { expected, source: sourceOf(keys) })
  })
}
