/**
 * Guides state the default of a setting as `path` (default `VALUE`) or `path`, default `VALUE`; it is that of the schema. A path may
 * be shortened to its last names, if these mean one setting.
 */
import { expect, it } from 'vitest'
import { allSettings, type Setting } from '#config/schema/settings-tree.ts'
import { wholeTree } from './tree.ts'

const stated = /`([\w.*[\]-]+)`(?: \(|,\s)default\s`([^`]*)`/g
/** Defaults written in another way, which this test would not see. */
const otherForms = [
  /\b\d[\d,.]*( \w+)? by default\b/i,
  /\bby default [^.`|]{0,80}\d/i,
  /\bdefault:? \d/i,
  new RegExp(`\`(${allSettings().map(lastName).join('|')})\` \\(\\d`),
]

const isGuide = (path: string): boolean =>
  /^(?:README|docs\/architecture|docs\/guides\/[\w-]+|plugins\/\w+\/README)\.md$/.test(path)
const guides = wholeTree().filter(({ path }) => isGuide(path))

function lastName({ path }: Setting): string {
  return path.split('.').at(-1)!.replace(/\W/g, '')
}

const defaultsOf = (path: string): unknown[] =>
  allSettings()
    .filter((one) => `.${one.path}`.endsWith(`.${path}`))
    .map(({ byDefault }) => (typeof byDefault === 'string' ? byDefault : JSON.stringify(byDefault)))

const statements = guides.flatMap(({ path: page, text }) =>
  [...text.matchAll(stated)].map(([, path, value]) => [page, path!, value!] as const),
)

it.each(statements)('%s states the default of %s', (_page, path, value) => {
  expect(defaultsOf(path)).toEqual([value])
})

it('every default is stated in the form that is compared', () => {
  expect(statements.length).toBeGreaterThan(10)
  const lines = guides.flatMap(({ path, text }) => text.split('\n').map((line) => `${path}: ${line}`))
  expect(lines.filter((line) => otherForms.some((form) => form.test(line)))).toEqual([])
})
