/**
 * Completes package-lock.json with the optional packages of other platforms. npm leaves them out when a registry does
 * not have them (a mirror for one platform, say), and then `npm ci` refuses the lock it wrote. Completed entries state
 * version and platform; they have no digest, since nobody here has seen the package. Run it after `npm install`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface LockedPackage {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

interface Absent {
  readonly path: string
  readonly version: string
  readonly parent: LockedPackage
}

/** Optional dependencies of locked packages that the lock itself lacks. */
export function absentOptionals(packages: Readonly<Record<string, LockedPackage>>): Absent[] {
  return Object.entries(packages).flatMap(([parentPath, parent]) =>
    Object.entries(parent.optionalDependencies ?? {})
      .filter(([name]) => packages[`node_modules/${name}`] === undefined)
      .filter(([name]) => packages[`${parentPath}/node_modules/${name}`] === undefined)
      .map(([name, version]) => ({ path: `node_modules/${name}`, version, parent })),
  )
}

/** The entry npm would write, as far as the package's name tells; undefined when it tells no platform. */
function entryOf({ path, version, parent }: Absent): object | undefined {
  const platform =
    /(android|darwin|freebsd|linux|openharmony|win32)-(x64|arm64|ia32|arm|ppc64|riscv64|s390x)\b(.*)$/.exec(
      path,
    )
  if (platform === null || !/^\d+\.\d+\.\d+$/.test(version)) return undefined
  const [, os, cpu, abi] = platform
  return {
    version,
    cpu: [cpu],
    ...(parent.dev === true ? { dev: true } : {}),
    ...(os === 'linux' ? { libc: [abi!.includes('musl') ? 'musl' : 'glibc'] } : {}),
    license: parent.license,
    optional: true,
    os: [os],
  }
}

if (import.meta.main) {
  const file = join(import.meta.dirname, '..', 'package-lock.json')
  const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, LockedPackage> }
  for (const absent of absentOptionals(lock.packages)) {
    const entry = entryOf(absent)
    if (entry !== undefined) lock.packages[absent.path] = entry
    process.stdout.write(`${entry === undefined ? 'left out' : 'completed'}: ${absent.path}\n`)
  }
  const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => a.localeCompare(b, 'en'))
  writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`)
}
