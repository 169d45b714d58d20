/**
 * Set-up of `npm test`: the real programs that tests talk to are there, or the reader knows which are not.
 * It installs them only where that was asked for (CI=true or SELVEDGE_INSTALL_PEERS=1); Debian packages need root
 * or a sudo without a password. Missing after that: a failure where CI=true, elsewhere a line.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder, missingPeers, peerTable, sourceOf } from '#test/kit/peer-table.ts'

const inCi = process.env['CI'] === 'true'
if (inCi || process.env['SELVEDGE_INSTALL_PEERS'] === '1') installMissing()

const missing = missingPeers()
for (const name of missing) {
  process.stdout.write(`peer missing: ${name} (${sourceOf(name)}); its tests are not run\n`)
}
if (inCi && missing.length > 0) process.exitCode = 1

function installMissing(): void {
  const sources = missingPeers().map((name) => peerTable[name].from)
  const debian = new Set(sources.flatMap((from) => ('debian' in from ? from.debian : [])))
  if (debian.size > 0) installFromDebian([...debian])
  for (const from of sources) if ('npm' in from) unpackFromNpm(from.npm)
}

function installFromDebian(packages: readonly string[]): void {
  const asRoot = rootPrefix()
  if (asRoot === undefined) {
    process.stdout.write('peers cannot be installed: neither root nor sudo without a password\n')
    return
  }
  const quietly = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=120']
  run([...asRoot, ...quietly, 'update'])
  run([...asRoot, ...quietly, 'install', '-y', '--no-install-recommends', ...packages])
}

/** What to put before a command to run it as root; undefined when that is not possible. */
function rootPrefix(): string[] | undefined {
  if (process.getuid?.() === 0) return []
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : undefined
}

/** A package for another kind of board: npm would refuse to install it here, so it is only unpacked. */
function unpackFromNpm(specification: string): void {
  const name = specification.replace('@', '-')
  const folder = join(cacheFolder, `${name}.new`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  run(['npm', 'pack', '--silent', `--pack-destination=${folder}`, specification])
  run(['tar', '-xzf', join(folder, `${name}.tgz`), '-C', folder, '--strip-components=1', 'package/bin'])
  rmSync(join(folder, `${name}.tgz`), { force: true })
  rmSync(join(cacheFolder, name), { recursive: true, force: true })
  renameSync(folder, join(cacheFolder, name))
}

function run([command, ...rest]: readonly string[]): void {
  const { status } = spawnSync(command!, rest, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) process.stdout.write(`failed with ${status}: ${command} ${rest.join(' ')}\n`)
}
