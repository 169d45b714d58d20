/** The example settings are right as they are, and stay right when every setting in them is switched on. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { bridges } from '#bridges/registry.ts'
import { loadSettings } from '#config/load/load.ts'
import { mistakeLine } from '#config/schema/mistakes.ts'
import { allSettings } from '#config/schema/settings-tree.ts'
import { settingComment } from '#scripts/setting-comments.ts'
import { settingsJsonSchema } from '#scripts/settings-json-schema.ts'
import { settingsExample, settingsPage } from '#scripts/settings-pages.ts'
import { isProduct, wholeTree } from './tree.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-example-'))
afterAll(() => rmSync(folder, { recursive: true }))

const bridgeChecks = Object.fromEntries(
  bridges.map((bridge) => [bridge.name, (raw: unknown) => bridge.check?.(raw).problems ?? []]),
)

async function load(text: string) {
  const file = join(folder, 'selvedge.yaml')
  writeFileSync(file, text)
  const loaded = await loadSettings({ file, env: {}, folder, bridgeChecks })
  if (loaded.mistakes !== undefined) return expect.unreachable(loaded.mistakes.map(mistakeLine).join('\n'))
  return loaded.settings
}

it('changes nothing as it is', async () => {
  expect(await load(settingsExample())).toEqual(await load(''))
})

it('holds every setting, each with a value that is allowed', async () => {
  const settings = await load(settingsExample().replaceAll(/^( *)#(?! \S)/gm, '$1'))
  expect(Object.keys(settings.provisioning.devices)).toEqual(['0004A30B001C0530'])
  expect(settings.bridges.json).toHaveLength(1)
  expect(settings.bridgeIn).toHaveLength(1)
  const { mode, allow } = settings.provisioning
  expect({ ...settings, bridges: 0, bridgeIn: 0, provisioning: { mode, allow } }).toEqual({
    ...(await load('')),
    bridges: 0,
    bridgeIn: 0,
    provisioning: { mode: 'auto', allow: [] },
  })
})

it('has a line in the reference page for every setting', () => {
  const page = settingsPage()
  for (const { path } of allSettings()) expect(page).toContain(`| \`${path}\` |`)
})

interface SchemaNode {
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
  readonly additionalProperties?: SchemaNode | false
}

it('has a JSON Schema with every setting, its description, expected value and default', () => {
  const root = JSON.parse(settingsJsonSchema()) as SchemaNode
  for (const { path, expected, byDefault } of allSettings()) {
    const { title, description } = settingComment(path)
    const node = path
      .replaceAll('[]', '.[]')
      .split('.')
      .reduce<SchemaNode | undefined>((at, name) => {
        if (name === '[]') return at?.items
        if (name === '*') return at?.additionalProperties || undefined
        return at?.properties?.[name]
      }, root)
    expect({ path, ...node }).toMatchObject({
      path,
      title,
      description: expect.stringContaining(description) as string,
    })
    expect(node!.description).toContain(expected)
    expect(node!.default).toEqual(byDefault)
  }
})

it('has a JSON Schema that rejects unknown names in every group', () => {
  const open = (node: SchemaNode | false | undefined, path: string): string[] => {
    if (typeof node !== 'object') return []
    const members = Object.entries(node.properties ?? {})
    const isOpen = node.properties !== undefined && node.additionalProperties === undefined
    return [
      ...(isOpen ? [path] : []),
      ...members.flatMap(([name, member]) => open(member, `${path}.${name}`)),
      ...open(node.items, `${path}[]`),
      ...open(node.additionalProperties, `${path}.*`),
    ]
  }
  expect(open(JSON.parse(settingsJsonSchema()) as SchemaNode, '')).toEqual([])
})

it('holds no setting that nobody reads', () => {
  const sources = wholeTree()
    .filter((one) => isProduct(one) && !/^runtime\/(config|cli)\//.test(one.path))
    .map(({ text }) => text)
    .join('\n')
  const readByItsName = ({ path }: { path: string }): boolean =>
    new RegExp(`\\b${path.split('.').at(-1)!.replace(/\W/g, '')}\\b`).test(sources)
  const unread = allSettings().filter((setting) => !readByItsName(setting))
  expect(unread.map(({ path }) => path)).toEqual([])
})
