/** Parsing of command lines, and whole command lines with a terminal that records its output. */
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { version } from '#base/register/version.ts'
import { commandLine } from '#cli/command-line.ts'
import { commands } from '#cli/commands.ts'
import { type Command, parseOptions } from './arguments.ts'
import type { Terminal } from './terminal.ts'

const command: Command = {
  name: 'try',
  summary: 'Try it',
  options: [
    { name: 'port', value: 'PORT', summary: 'A port' },
    { name: 'set', value: 'PATH=VALUE', many: true, summary: 'A setting' },
    { name: 'json', summary: 'JSON' },
  ],
  load: async () => async () => 0,
}

function given(...args: string[]) {
  const parsed = parseOptions(command, args)
  if ('mistakes' in parsed) return expect.unreachable(parsed.mistakes.join())
  return parsed.given
}

function mistakes(...args: string[]): readonly string[] {
  const parsed = parseOptions(command, args)
  return 'mistakes' in parsed ? parsed.mistakes : []
}

describe('parseOptions', () => {
  it('accepts values and switches in both notations', () => {
    const options = given('--port', '80', '--json', '--set', 'a=1', '--set=b=2')
    expect(options.text('port')).toBe('80')
    expect(options.all('set')).toEqual(['a=1', 'b=2'])
    expect([options.has('json'), options.has('help'), options.text('none')]).toEqual([true, false, undefined])
  })

  it('accepts a value that looks like an option only after =', () => {
    expect(given('--port=--json').text('port')).toBe('--json')
    expect(given('--set', '').all('set')).toEqual([''])
  })

  it.each([
    [
      ['--prot', '1'],
      ['unknown option --prot; did you mean --port?', 'unexpected argument "1"'],
    ],
    [['--xyzzy'], ['unknown option --xyzzy']],
    [
      ['-p', '1'],
      ['unknown option -p', 'unexpected argument "1"'],
    ],
    [['--port'], ['--port needs a value, PORT']],
    [['--json=yes'], ['--json takes no value']],
    [['--port', '1', '--port', '2'], ['--port is given twice']],
    [['file'], ['unexpected argument "file"']],
    [['--', '--json'], ['unexpected argument "--json"']],
    [['--no-json'], ['unknown option --no-json; did you mean --json?']],
    [
      ['--port', '1', '--jsn', 'x'],
      ['unknown option --jsn; did you mean --json?', 'unexpected argument "x"'],
    ],
  ])('%j is rejected', (args, expected) => {
    expect(mistakes(...args)).toEqual(expected)
  })

  it('shows the help despite other mistakes', () => {
    expect(given('--prot', '-h').has('help')).toBe(true)
  })
})

async function type(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const text = { out: '', err: '' }
  const terminal: Terminal = {
    out: (part) => (text.out += part),
    err: (part) => (text.err += part),
    env: {},
    input: Readable.from([]),
    columns: undefined,
  }
  return { code: await commandLine(args, terminal), ...text }
}

describe('commandLine', () => {
  it('prints its version', async () => {
    expect(await type('--version')).toEqual({ code: 0, out: `selvedge ${version}\n`, err: '' })
  })

  it('prints the help to standard output on request, and to standard error after a mistake', async () => {
    for (const word of ['--help', '-h', 'help']) {
      const { code, out, err } = await type(word)
      expect([code, err]).toEqual([0, ''])
      for (const { name, summary } of commands)
        expect(out).toMatch(new RegExp(`^ {2}${name} +${summary}$`, 'm'))
    }
    expect(await type()).toMatchObject({
      code: 64,
      out: '',
      err: expect.stringContaining('Usage: selvedge COMMAND') as string,
    })
  })

  it.each(commands.map(({ name }) => name))('%s documents all its options', async (name) => {
    const { code, out } = await type(name, '--help')
    expect(code).toBe(0)
    for (const option of commands.find((one) => one.name === name)!.options) {
      expect(out).toContain(`  --${option.name}`)
      expect(option.summary).toMatch(/^[A-Z/$a-z].*[^.]$/)
    }
  })

  it('suggests a similar command', async () => {
    expect(await type('stauts')).toEqual({
      code: 64,
      out: '',
      err: 'selvedge: unknown command "stauts"; did you mean status?\nSee selvedge --help\n',
    })
    expect((await type('frobnicate')).err).toContain(
      'commands are run, check, status, decode, export, import, backup, restore, uplink, index, models, faults, queue, devices, tunnels, users, demo',
    )
  })

  it('reports all mistakes of a line', async () => {
    const { code, err } = await type('decode', '--topik', 'a', '--json=1')
    expect(code).toBe(64)
    expect(err.split('\n')).toEqual([
      'selvedge decode: unknown option --topik; did you mean --topic?',
      'selvedge decode: unexpected argument "a"',
      'selvedge decode: --json takes no value',
      'See selvedge decode --help',
      '',
    ])
  })

  it('reports all mistakes of the settings, with exit code 78', async () => {
    const { code, err } = await type(
      'decode',
      '--topic',
      'a',
      '--http-port',
      'x',
      '--set',
      'log.levle=info',
      '--set',
      'host',
    )
    expect(code).toBe(78)
    expect(err.split('\n')[0]).toBe('selvedge: 3 mistakes in the settings')
    expect(err).toContain(
      'log.levle: expected the path of a setting; did you mean log.level? (--set log.levle)',
    )
    expect(err).toContain('http.port: "x": expected a port')
    expect(err).toContain('host: "": expected a host name')
  })
})
