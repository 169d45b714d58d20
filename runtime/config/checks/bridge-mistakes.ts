/**
 * Checks the settings of firmware bridges. This room does not import bridges: each bridge supplies its check
 * as a port, and its findings become ordinary mistakes.
 */
import { type Keys, type Mistake, mistakeAt } from '#config/schema/mistakes.ts'
import { nearest } from '#config/schema/nearest.ts'
import type { Settings } from '#config/schema/settings-schema.ts'

/**
 * Returns every mistake in the settings of a bridge, with paths relative to them, such as
 * `[0].fields[2].scale`.
 */
export type BridgeCheck = (raw: unknown) => readonly { readonly path: string; readonly expected: string }[]

/** Checks by bridge name. */
export type BridgeChecks = Readonly<Record<string, BridgeCheck>>

export function bridgeMistakes(
  settings: Settings,
  checks: BridgeChecks,
  sourceOf: (keys: Keys) => string,
): Mistake[] {
  return Object.entries(settings.bridges).flatMap(([name, given]) =>
    (checks[name]?.(given) ?? []).map(({ path, expected }) => {
      const keys = ['bridges', name, ...keysOf(path)]
      const meant = nearest(String(keys.at(-1)), choicesOf(expected))
      return mistakeAt(settings, keys, { expected, nearest: meant, source: sourceOf(keys) })
    }),
  )
}

function keysOf(path: string): Keys {
  const names = path.match(/[^.[\]]+/g) ?? []
  return names.map((name) => (/^\d+$/.test(name) ? Number(name) : name))
}

function choicesOf(expected: string): readonly string[] {
  return expected.startsWith('one of ') ? expected.slice('one of '.length).split(', ') : []
}
