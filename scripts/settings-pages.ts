/**
 * Generates the documentation of settings from their schema: the reference page, and an example file with
 * every setting and its default. In the example file, `# ` starts a comment; removing a `#` directly before a
 * setting enables it.
 */
import { variableOf } from '#config/checks/environment.ts'
import { absentSections, ambiguousVariables, idleVariables } from '#config/checks/foreign-names.ts'
import { settingsSchema } from '#config/schema/settings-schema.ts'
import { allSettings, type Setting } from '#config/schema/settings-tree.ts'
import { settingComment } from './setting-comments.ts'

const width = 110

/** Example values of settings without a default, because operators choose their names, or of nested groups. */
const examples: Readonly<Record<string, readonly string[]>> = {
  'quality.sources.hosts': ['sources:', '  hosts: []'],
  'provisioning.devices': [
    'devices:',
    '  "0004A30B001C0530":',
    '    name: Weather mast',
    '    location: [8.0002, 52.0021]',
    '    fields:',
    '      temperature:',
    '        label: air temperature',
    '        unitCode: CEL',
    '        min: -30',
    '        max: 60',
    '        updateInterval: 60',
    '        valueType: float',
  ],
  'bridges.json': [
    'json:',
    '  - topic: site/{device}/state',
    '    time: { path: at, format: unix-ms }',
    '    fields:',
    '      - { path: t, name: temperature, unit: °C }',
    '      - { path: rh, name: humidity, unit: "%" }',
  ],
  bridgeIn: [
    'bridgeIn:',
    '  - url: mqtts://broker.example:8883',
    '    topics: [plant/#]',
    '    username: selvedge',
    '    passwordFile: broker-password',
  ],
}

export function settingsExample(): string {
  const blocks = Object.keys(settingsSchema.entries).map((name) => {
    const own = allSettings().filter(({ path }) => path === name || path.startsWith(`${name}.`))
    const isSection = own[0]!.path !== name
    const lines = own
      .filter(({ path }) => !/[*[]/.test(path))
      .flatMap((setting, i, all) => [
        ...headingOf(setting, all[i - 1]),
        ...exampleLines(setting, isSection ? '  ' : ''),
      ])
    return [...(isSection ? [`${name}:`] : []), ...lines, ''].join('\n')
  })
  return [
    '# yaml-language-server: $schema=/opt/selvedge/docs/reference/selvedge.schema.json',
    '# Every setting, with its default. Remove the # before a setting to change it.',
    '# Generated from runtime/config/schema/settings-schema.ts by `npm run document`; `selvedge check` reports every mistake.',
    '',
    ...blocks,
  ].join('\n')
}

/** The name of a section within a section, before its first setting. */
function headingOf({ path }: Setting, before: Setting | undefined): string[] {
  const inner = innerSection(path)
  return inner === undefined || inner === innerSection(before?.path ?? '') || path in examples
    ? []
    : [`  #${inner}:`]
}

const innerSection = (path: string): string | undefined => /^[^.]+\.(.+)\.[^.]+$/.exec(path)?.[1]

function exampleLines(setting: Setting, indent: string): string[] {
  const name = setting.path.split('.').at(-1)!
  const words = `${documentation(setting)} ${capital(setting.expected)}; ${defaultWords(setting)}.`
  const isNested = innerSection(setting.path) !== undefined && !(setting.path in examples)
  const value = examples[setting.path] ?? [`${name}: ${JSON.stringify(setting.byDefault ?? null)}`]
  return [
    ...wrapped(words, width - indent.length - 2).map((line) => `${indent}# ${line}`),
    ...value.map((line) => `${indent}#${isNested ? '  ' : ''}${line}`),
  ]
}

function documentation({ path }: Setting): string {
  const { title, description } = settingComment(path)
  return `${title}. ${description}`
}

function wrapped(text: string, most: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < most) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function defaultWords({ byDefault, defaultText }: Setting): string {
  if (defaultText !== undefined) return `by default ${defaultText}`
  return byDefault === undefined ? 'optional' : `by default ${JSON.stringify(byDefault)}`
}

export function settingsPage(): string {
  const rows = allSettings().map((setting) => [
    `\`${setting.path}\``,
    /[*[]/.test(setting.path) ? '' : `\`${variableOf(setting.path)}\``,
    setting.expected,
    setting.defaultText ??
      (setting.byDefault === undefined ? '' : `\`${JSON.stringify(setting.byDefault)}\``),
    documentation(setting),
  ])
  return [
    '# Settings\n',
    'All settings are optional, and take effect at the next start. They are read from a file (`--config`, `$SELVEDGE_CONFIG`, else `selvedge.yaml` or `selvedge.json` in the',
    'working folder), from the environment, and from the command line (`--set PATH=VALUE`), in this order of increasing',
    'precedence. In a path, `*` stands for a name chosen by the operator and `[]` for each item of a list. In the environment, a list is',
    'comma-separated, and a group is JSON. Relative file names are relative to the data folder. Any mistake prevents the',
    'gateway from starting; `selvedge check` reports all of them at once. [selvedge.schema.json](selvedge.schema.json) lets editors complete',
    'and check the file: the first line of the example settings names it for YAML; in JSON, the member `$schema` does.\n',
    `Generated from \`runtime/config/schema/settings-schema.ts\` by \`npm run document\`.\n`,
    table(['Setting', 'Variable', 'Value', 'Default', 'Meaning'], rows),
    '\n## Names of components that are not built\n',
    'These are accepted, have no effect, and are reported by the log event `config.absent-part`: the sections',
    `${Object.keys(absentSections).map(code).join(', ')}, variables that start with their names`,
    `(such as \`${variableOf('identity.port')}\`), and these variables of the components that the interface specification`,
    'describes:\n',
    table(
      ['Variable', 'Why'],
      Object.entries(idleVariables).map(([name, why]) => [code(name), why]),
    ),
    '\nThese are refused without a prefix, because several components read them with different meanings:\n',
    table(
      ['Variable', 'Write instead'],
      Object.entries(ambiguousVariables).map(([name, parts]) => [
        code(name),
        parts.map((part) => code(`${variableOf(part)}_${name}`)).join(', '),
      ]),
    ),
    '\n`NODE_TLS_REJECT_UNAUTHORIZED=0` keeps the gateway from starting: name your authority in `NODE_EXTRA_CA_CERTS`.\n',
  ].join('\n')
}

function code(text: string): string {
  return `\`${text}\``
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('<', '&lt;')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
