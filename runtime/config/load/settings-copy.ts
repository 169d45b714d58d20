/**
 * A copy of given settings that other sources can be merged into. YAML shares values between places, and
 * empty members count as absent. It rejects what no schema can check: nesting that is too deep, and names
 * with a special meaning in JavaScript.
 */
import { limits } from '#base/limits/limits.ts'
import { type Keys, type Mistake, pathText, shown } from '#config/schema/mistakes.ts'

const forbiddenNames = ['__proto__', 'constructor', 'prototype']

/** @param path the place of the value. @returns undefined as value if it is nested too deeply. */
export function settingsCopy(
  value: unknown,
  path: Keys,
  source: string,
): { readonly value: unknown; readonly mistakes: readonly Mistake[] } {
  const mistakes: Mistake[] = []
  let isTooDeep = false
  const copy = (one: unknown, keys: Keys): unknown => {
    if (typeof one !== 'object' || one === null) return one
    isTooDeep ||= keys.length - path.length >= limits.settingsDepthMax.value
    if (isTooDeep) return undefined
    if (Array.isArray(one)) return one.map((item, i) => copy(item, [...keys, i]))
    const members: [string, unknown][] = []
    for (const [name, member] of Object.entries(one)) {
      const here = [...keys, name]
      const copied = copy(member ?? undefined, here)
      if (forbiddenNames.includes(name)) {
        const expected = 'another name'
        mistakes.push({ path: pathText(here), value: shown(copied, here), expected, source })
      } else members.push([name, copied])
    }
    return Object.fromEntries(members)
  }
  const copied = copy(value, path)
  if (!isTooDeep) return { value: copied, mistakes }
  const expected = `at most ${limits.settingsDepthMax.value} levels`
  return { value: undefined, mistakes: [{ path: pathText(path), expected, source }] }
}
