/**
 * Generates the JSON Schema of the settings file from the schema of the settings, so that editors complete
 * names, show descriptions with bounds, units and defaults, and mark mistakes. Rules that JSON Schema cannot
 * express are left to `selvedge check`.
 */
import { toJsonSchema } from '@valibot/to-json-schema'
import { absentSections } from '#config/checks/foreign-names.ts'
import { settingsSchema } from '#config/schema/settings-schema.ts'
import { isDocumented, settingComment } from './setting-comments.ts'

interface Node {
  [member: string]: unknown
  type?: unknown
  description?: string
  properties?: Record<string, Node>
  required?: readonly string[]
}

export function settingsJsonSchema(): string {
  const { $schema, ...root } = toJsonSchema(settingsSchema, { errorMode: 'ignore' })
  const { properties, ...rest } = readable(root as unknown as Node, '')
  const absent = Object.entries(absentSections).map(([name, part]): [string, Node] => [
    name,
    { description: `Accepted without effect: this version has no ${part}.` },
  ])
  const schema = {
    $schema,
    title: 'Settings of Selvedge',
    ...rest,
    properties: { $schema: { type: 'string' }, ...properties, ...Object.fromEntries<Node>(absent) },
  }
  return `${JSON.stringify(schema, undefined, 2)}\n`
}

/** Adds the documentation of the setting at a path: its title, and one description. */
function readable(node: Node, path: string): Node {
  const { expected, defaultText, default: byDefault, ...own } = node
  if (typeof own['items'] === 'object') own['items'] = readable(own['items'] as Node, `${path}[]`)
  if (typeof own['additionalProperties'] === 'object')
    own['additionalProperties'] = readable(own['additionalProperties'] as Node, `${path}.*`)
  if (own.properties !== undefined)
    own.properties = Object.fromEntries(
      Object.entries(own.properties).map(([key, value]) => {
        const member = readable(value, path === '' ? key : `${path}.${key}`)
        return [key, own.required?.includes(key) === true ? member : emptyable(member)]
      }),
    )
  const { title, description } = isDocumented(path) ? settingComment(path) : {}
  const words = [
    description,
    typeof expected === 'string' && `Expected: ${expected}.`,
    typeof defaultText === 'string' && `Default: ${defaultText}.`,
  ].filter((text) => typeof text === 'string')
  return {
    ...own,
    ...(title !== undefined && { title }),
    ...(byDefault !== undefined && { default: byDefault }),
    ...(words.length > 0 && { description: words.join(' ') }),
  }
}

/** Allows null, which counts as absent: the value of a YAML section without lines. */
function emptyable(node: Node): Node {
  return typeof node.type === 'string' && node['enum'] === undefined
    ? { ...node, type: [node.type, 'null'] }
    : node
}
