/**
 * Invalid settings of devices: one row per kind of mistake.
 */
import { it } from 'vitest'
import {
  createSettingsFolder,
  expectMistakes,
  type GivenSettings,
  type MistakeRow,
} from '#test/kit/settings-folder.ts'

const { load } = createSettingsFolder()

const device = (text: string): string => `provisioning: {devices: {d: ${text}}}`
const oneField = (text: string): string => device(`{fields: {t: ${text}}}`)
const text = (most: number): string => `text of 1 to ${most} characters, in quotes if it looks like a number`
const seconds = 'a number of seconds greater than 0'

const broken: [title: string, given: GivenSettings, mistakes: MistakeRow[]][] = [
  [
    'an unknown key of a device',
    { yaml: device('{lable: x}') },
    [
      [
        'provisioning.devices.d.lable',
        '"x"',
        'one of name, location, fields',
        'provisioning.devices.*.fields.*.label',
      ],
    ],
  ],
  [
    'an unknown key of a field',
    { yaml: oneField('{unit: C}') },
    [
      [
        'provisioning.devices.d.fields.t.unit',
        '"C"',
        /^one of label, unitCode, /,
        'provisioning.devices.d.fields.t.unitCode',
      ],
    ],
  ],
  [
    'fields as a list',
    { yaml: device('{fields: [t]}') },
    [['provisioning.devices.d.fields', '["t"]', 'a group of fields, by name']],
  ],
  [
    'a device that is a value',
    { yaml: device('7') },
    [['provisioning.devices.d', '7', 'a group of settings of a device']],
  ],
  [
    'an interval of zero',
    { yaml: oneField('{updateInterval: 0}') },
    [['provisioning.devices.d.fields.t.updateInterval', '0', seconds]],
  ],
  [
    'an infinite interval',
    { yaml: oneField('{updateInterval: .inf}') },
    [['provisioning.devices.d.fields.t.updateInterval', 'null', seconds]],
  ],
  [
    'a bound that is text',
    { yaml: oneField('{min: low}') },
    [['provisioning.devices.d.fields.t.min', '"low"', 'a number']],
  ],
  [
    'max below min',
    { yaml: oneField('{min: 5, max: 1}') },
    [['provisioning.devices.d.fields.t.max', '1', 'a number of at least min, 5']],
  ],
  [
    'an unknown kind of value',
    { yaml: oneField('{valueType: real}') },
    [['provisioning.devices.d.fields.t.valueType', '"real"', 'one of int, float, string, boolean']],
  ],
  [
    'a bad name of a device whose id is a URN',
    { yaml: 'provisioning: {devices: {"urn:dev:1": {name: ""}}}' },
    [['provisioning.devices["urn:dev:1"].name', '""', text(256)]],
  ],
  [
    'a device named like a prototype',
    { json: '{"provisioning":{"devices":{"__proto__":{}}}}' },
    [['provisioning.devices.__proto__', '{}', 'another name']],
  ],
  [
    'a device both allowed and ignored',
    { yaml: 'provisioning: {allow: [a, b], ignore: [b]}' },
    [['provisioning.allow[1]', '"b"', 'a device that is not in provisioning.ignore']],
  ],
]

it.each(broken)('%s', async (_, given, rows) => {
  expectMistakes(await load(given), rows)
})
