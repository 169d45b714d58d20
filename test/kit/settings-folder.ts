/**
 * Settings given to the real loader as text: YAML or JSON in a file of their own, environment, flags.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'
import { type Loaded, type LoadedSettings, loadSettings, type SettingFlag } from '#config/load/load.ts'
import { mistakeLine } from '#config/schema/mistakes.ts'

export interface GivenSettings {
  readonly yaml?: string
  readonly json?: string
  readonly env?: Record<string, string>
  readonly flags?: Record<string, string>
}

/** A folder for settings files, which goes with the test file. */
export function createSettingsFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-settings-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  let files = 0
  const load = ({ yaml, json, env = {}, flags = {} }: GivenSettings): Promise<Loaded> => {
    const text = yaml ?? json
    const file =
      text === undefined ? undefined : join(folder, `${++files}.${yaml === undefined ? 'json' : 'yaml'}`)
    if (file !== undefined) writeFileSync(file, text!)
    const list = Object.entries(flags).map(
      ([path, value]): SettingFlag => ({ path, text: value, source: `--set ${path}` }),
    )
    return loadSettings({ file, env, flags: list, folder })
  }
  return Object.freeze({
    folder,
    load,
    /** The file given last. */
    lastFile: () => join(folder, `${files}.yaml`),
    /** Fails where there are mistakes. */
    async settingsOf(given: GivenSettings): Promise<LoadedSettings> {
      const loaded = await load(given)
      if (loaded.mistakes !== undefined) expect.unreachable(loaded.mistakes.map(mistakeLine).join('\n'))
      return loaded
    },
  })
}

export type MistakeRow = [
  path: string,
  value: string | undefined,
  expected: string | RegExp,
  nearest?: string | undefined,
]

export function expectMistakes({ mistakes }: Loaded, rows: readonly MistakeRow[]): void {
  expect(mistakes?.map(({ path, value, expected, nearest }) => ({ path, value, expected, nearest }))).toEqual(
    rows.map(([path, value, expected, nearest]) => ({
      path,
      value,
      expected: typeof expected === 'string' ? expected : (expect.stringMatching(expected) as string),
      nearest,
    })),
  )
}
