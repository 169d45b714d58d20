/**
 * What people read about settings, made from their schema: the reference page, and an example file that holds every
 * setting with its default. In the example, `# ` begins words, and a `#` right before a setting can be taken away.
 */
import { variableOf } from '#config/checks/environment.ts'
import {
  absentSections,
  ambiguousVariables,
  foreignVariables,
  partNames,
} from '#config/checks/foreign-names.ts'
import { settingsSchema } from '#config/schema/settings-schema.ts'
import { allSettings, type Setting } from '#config/schema/settings-tree.ts'

const width = 110

/** Values for what has no default because people choose its names. */
const examples: Readonly<Record<string, readonly string[]>> = {
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
      .flatMap((setting) => exampleLines(setting, isSection ? '  ' : ''))
    return [...(isSection ? [`${name}:`] : []), ...lines, ''].join('\n')
  })
  return [
    '# Every setting, with its default. Take away the # before a setting to change it.',
    '# Generated from runtime/config/schema/settings-schema.ts by `npm run document`; `selvedge check` tells every mistake.',
    '',
    ...blocks,
  ].join('\n')
}

function exampleLines(setting: Setting, indent: string): string[] {
  const name = setting.path.split('.').at(-1)!
  const words = `${setting.title}. ${setting.description} ${capital(setting.expected)}; ${defaultWords(setting)}.`
  const value = examples[setting.path] ?? [`${name}: ${JSON.stringify(setting.byDefault ?? null)}`]
  return [
    ...wrapped(words, width - indent.length - 2).map((line) => `${indent}# ${line}`),
    ...value.map((line) => `${indent}#${line}`),
  ]
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
  return byDefault === undefined ? 'may be left out' : `by default ${JSON.stringify(byDefault)}`
}

export function settingsPage(): string {
  const rows = allSettings().map((setting) => [
    `\`${setting.path}\``,
    /[*[]/.test(setting.path) ? '' : `\`${variableOf(setting.path)}\``,
    setting.expected,
    setting.defaultText ??
      (setting.byDefault === undefined ? '' : `\`${JSON.stringify(setting.byDefault)}\``),
    `${setting.title}. ${setting.description}`,
    setting.restart ? 'restart' : 'at once',
  ])
  return [
    '# Settings\n',
    'None is needed. They come from a file (`--config`, `$SELVEDGE_CONFIG`, else `selvedge.yaml` or `selvedge.json` of the',
    'working folder), from the environment, and from the command line (`--set PATH=VALUE`), in this order of rising',
    'weight. In a path `*` stands for a name people choose and `[]` for each item of a list. In the environment a list is',
    'comma-separated, and a group is JSON. Relative file names start in the data folder. A mistake anywhere keeps the',
    'gateway from starting; `selvedge check` tells all of them at once.\n',
    `Generated from \`runtime/config/schema/settings-schema.ts\` by \`npm run document\`.\n`,
    table(['Setting', 'Variable', 'Value', 'Default', 'Meaning', 'Takes effect'], rows),
    '\n## Names of parts that are not built\n',
    'These are accepted, have no effect, and are told by the log event `config.absent-part`: the sections',
    `${Object.keys(absentSections).map(code).join(', ')}, variables that begin with their names`,
    `(such as \`${variableOf('orchestrator.port')}\`), and the variables of the interface specification and of the components it`,
    'describes:\n',
    table(
      ['Variable', 'Belongs to'],
      Object.entries(foreignVariables).map(([name, parts]) => [
        code(name),
        parts.map((part) => partNames[part]).join(', '),
      ]),
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
