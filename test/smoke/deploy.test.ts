/**
 * The deployment: install.sh is staged into an empty folder, run twice, and checked by systemd's own tools.
 * Then the installed program is started and transfers a value from MQTT to HTTP, on this machine and on an
 * emulated ARM board.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { connectAsync } from 'mqtt'
import { afterAll, describe, expect, it } from 'vitest'
import { describePeer } from '#test/kit/peers.ts'
import { startGatewayProcess } from '#test/kit/process.ts'

const top = join(import.meta.dirname, '..', '..')
const installer = join(top, 'deploy', 'install.sh')
const thisArch = process.arch as 'x64' | 'arm64'
const scratch = mkdtempSync(join(tmpdir(), 'selvedge-deploy-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const install = (...args: string[]): string =>
  execFileSync(installer, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
const refusal = (...args: string[]) => spawnSync(installer, args, { encoding: 'utf8' })

function staged(name: string, ...args: string[]): string {
  const root = join(scratch, name)
  install('--root', root, ...args)
  return root
}

describe('install.sh', () => {
  const root = staged('once')
  const program = join(root, 'opt', 'selvedge')

  it('installs the program with its Node and only the binary of this architecture', () => {
    expect(readdirSync(program).toSorted()).toEqual(
      [
        ...['LICENSE', 'README.md', 'THIRD-PARTY-NOTICES.txt', 'bin', 'dist', 'docs', 'firmware-bridges'],
        ...['models', 'node', 'node_modules'],
        ...['package.json', 'selvedge.example.yaml'],
      ].toSorted(),
    )
    // Settings and guides refer to these pages.
    for (const page of [
      'firmware-bridges/json/README.md',
      'docs/guides/devices.md',
      'docs/reference/limits.md',
    ])
      expect(existsSync(join(program, page))).toBe(true)
    expect(readdirSync(join(program, 'dist')).toSorted()).toEqual([
      'approach-thread.js',
      'backup-thread.js',
      'inference-process.js',
      'main.js',
      'pages',
      'training-thread.js',
      'virtual-sensor-thread.js',
      'writer-thread.js',
    ])
    for (const page of ['quality', 'search']) {
      const endings = readdirSync(join(program, 'dist', 'pages', page)).map((name) =>
        name.replace(/^page(-[0-9a-f]+)?/, ''),
      )
      expect(endings.toSorted()).toEqual(['.css.br', '.css.gz', '.html', '.js.br', '.js.gz'])
    }
    // Shipped models, without the scripts that trained them.
    const models = readdirSync(join(program, 'models'))
    expect(models).not.toContain('train')
    for (const name of models) expect(existsSync(join(program, 'models', name, 'model.json'))).toBe(true)
    expect(readdirSync(join(program, 'node_modules'))).toEqual([
      'better-sqlite3',
      'onnxruntime-common',
      'onnxruntime-node',
    ])
    expect(readdirSync(join(program, 'node_modules', 'better-sqlite3', 'prebuilds'))).toEqual([
      `linux-${thisArch}.node`,
    ])
    const runtime = join(program, 'node_modules', 'onnxruntime-node', 'bin', 'napi-v6')
    expect(readdirSync(runtime)).toEqual(['linux'])
    expect(readdirSync(join(runtime, 'linux'))).toEqual([thisArch])
    expect(statSync(join(program, 'node', 'bin', 'node')).mode & 0o111).toBe(0o111)
  })

  it('includes the licences of all bundled packages, and of Node', () => {
    const notices = readFileSync(join(program, 'THIRD-PARTY-NOTICES.txt'), 'utf8')
    for (const name of ['better-sqlite3', 'graphql', 'hono', 'mqtt-packet', 'valibot', 'ws', 'yaml'])
      expect(notices).toMatch(new RegExp(`^${name} \\d`, 'm'))
    expect(notices).toMatch(/^graphiql \d/m)
    expect(notices).toMatch(/^uplot \d/m)
    expect(notices).toContain('Node.js is licensed for use as follows')
    expect(notices).not.toContain('(undefined)')
  })

  it('upgrades in place and keeps the settings', () => {
    const settings = join(root, 'etc', 'selvedge', 'selvedge.yaml')
    // They may contain secrets.
    expect(statSync(settings).mode & 0o777).toBe(0o640)
    writeFileSync(settings, '# mine\n{}\n')
    writeFileSync(join(program, 'dist', 'left-over.js'), '')
    install('--root', root)
    expect(readFileSync(settings, 'utf8')).toBe('# mine\n{}\n')
    expect(existsSync(join(program, 'dist', 'left-over.js'))).toBe(false)
    expect(readdirSync(join(root, 'opt'))).toEqual(['selvedge'])
  })

  it('installs settings to which lines can be appended', () => {
    const settings = join(staged('fresh'), 'etc', 'selvedge', 'selvedge.yaml')
    writeFileSync(settings, `${readFileSync(settings, 'utf8')}http: {port: 0}\nmqtt: {port: 0}\n`)
    const deployed = join(scratch, 'fresh', 'opt', 'selvedge')
    const { status, stdout } = spawnSync(join(deployed, 'bin', 'selvedge'), ['check'], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] },
    })
    expect(stdout).toContain(`ok, from ${settings}`)
    expect(stdout).toContain(`${join(scratch, 'fresh', 'var', 'lib', 'selvedge')} will be created`)
    expect(status).toBe(0)
    expect(readFileSync(join(deployed, 'selvedge.example.yaml'), 'utf8')).toContain('#data: ')
  })

  it('runs the installed command through the link on the path', () => {
    const link = join(root, 'usr', 'local', 'bin', 'selvedge')
    expect(statSync(join(program, 'bin', 'selvedge')).mode & 0o111).toBe(0o111)
    expect(execFileSync('readlink', [link], { encoding: 'utf8' }).trim()).toBe('/opt/selvedge/bin/selvedge')
  })

  it('rejects invalid options with a reason', () => {
    expect(refusal('--root', join(scratch, 'no'), '--arch', 'mips').stderr).toContain(
      '--arch is x64 or arm64',
    )
    expect(refusal('--root', join(scratch, 'no'), '--node', '/bin/missing').stderr).toContain('is missing')
    expect(refusal('--sideways').stderr).toContain('unknown option --sideways')
    const other = thisArch === 'x64' ? 'arm64' : 'x64'
    expect(refusal('--root', join(scratch, 'no'), '--arch', other).stderr).toContain(`is not for ${other}`)
    expect(existsSync(join(scratch, 'no'))).toBe(false)
  })

  it('has help', () => expect(install('--help')).toContain('--root DIR'))

  it('transfers a value from MQTT to HTTP, and stops in time', () =>
    expectWorking([join(program, 'bin', 'selvedge')]))
})

describePeer('systemd-analyze', 'the unit', (analyze) => {
  it('passes systemd-analyze verify', () => {
    // verify looks for ExecStart on this machine, so the unit refers to the staged program instead.
    const root = staged('verified')
    const unit = readFileSync(join(root, 'etc', 'systemd', 'system', 'selvedge.service'), 'utf8')
    const shown = join(scratch, 'selvedge.service')
    writeFileSync(shown, unit.replace('ExecStart=/opt/', `ExecStart=${root}/opt/`))
    const verdict = spawnSync(analyze, ['verify', '--man=no', shown], { encoding: 'utf8' })
    expect(verdict.stderr.split('\n').filter((line) => line.includes('selvedge'))).toEqual([])
    expect(verdict.status).toBe(0)
  })

  it('has no higher exposure level than measured: 1.5 by systemd 252', () => {
    const unit = join(top, 'deploy', 'systemd', 'selvedge.service')
    const verdict = spawnSync(analyze, ['security', '--offline=yes', '--threshold=15', unit], {
      encoding: 'utf8',
    })
    expect(verdict.stdout).toContain('Overall exposure level')
    expect(verdict.status).toBe(0)
  })
})

describePeer('shellcheck', 'shell scripts', (shellcheck) => {
  it.each(['deploy/install.sh', 'bin/selvedge', '.ci/run'])('%s is clean', (script) => {
    expect(spawnSync(shellcheck, [join(top, script)], { encoding: 'utf8' }).stdout).toBe('')
  })
})

describePeer('qemu-aarch64', 'a 64-bit ARM board', (qemu) => {
  describePeer('node-arm64', 'with its own Node', (node) => {
    it('runs the program installed for it', async () => {
      const program = join(staged('board', '--arch', 'arm64', '--node', node), 'opt', 'selvedge')
      const emulated = [qemu, '-L', '/usr/aarch64-linux-gnu', join(program, 'node', 'bin', 'node')]
      await expectWorking([...emulated, join(program, 'dist', 'main.js')])
    })
  })
})

/** Starts an installed gateway, sends one value by HTTP and one by MQTT, reads both back, and stops it. */
async function expectWorking(program: readonly string[]): Promise<void> {
  const gateway = await startGatewayProcess({ program, readyWithinMs: 200_000 })
  try {
    const words = readFileSync(`/proc/${gateway.pid}/cmdline`, 'utf8').split('\0')
    expect(words).toContain(join(dirname(program.at(-1)!), '..', 'node', 'bin', 'node'))
    expect((await fetch(`${gateway.httpUrl}/health/ready`)).status).toBe(200)
    const posted = await fetch(`${gateway.httpUrl}/senml`, {
      method: 'POST',
      headers: { 'content-type': 'application/senml+json' },
      body: '[{"bn":"urn:dev:mac:0024befffe804ff1","n":"temperature","u":"Cel","v":21.5}]',
    })
    expect(posted.ok).toBe(true)
    const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
    await client.publishAsync('senml/a', '[{"bn":"urn:dev:mac:0024befffe804ff2","n":"humidity","v":48.25}]', {
      qos: 1,
    })
    await client.endAsync()
    const type = encodeURIComponent('http://purl.org/iot/ontology/iot-stream#StreamObservation')
    const found = await (await fetch(`${gateway.httpUrl}/ngsi-ld/v1/entities?type=${type}`)).text()
    expect(found).toContain('21.5')
    expect(found).toContain('48.25')
  } finally {
    expect(await gateway.stop()).toEqual({ code: 0, signal: null })
  }
}
