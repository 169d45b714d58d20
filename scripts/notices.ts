/**
 * The licences of everything that is deployed and not ours: packages that are bundled, the native library of the database,
 * Node itself. Made at the build from the licence files of the packages that the bundler read, so that it cannot be out of
 * date; a package that names no licence ends the build.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const licenceFile = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i

/** @param inputs files that were bundled @param more names of packages that are deployed as they are */
export function noticesOf(root: string, inputs: readonly string[], more: readonly string[]): string {
  const folders = new Set(more.map((name) => join(root, 'node_modules', name)))
  for (const input of inputs) {
    const [folder] = /^.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+/.exec(resolve(input)) ?? []
    if (folder !== undefined) folders.add(folder)
  }
  const packages = [...folders].map((folder) => noticeOf(folder)).toSorted()
  const head =
    'Selvedge is under the licence in LICENSE. It is deployed with the following packages and with Node.js,\n' +
    'each under the terms that stand below its name.\n'
  return [head, ...new Set(packages), `Node.js\n\n${readFileSync(nodeLicence(root), 'utf8')}`].join(
    `\n${'-'.repeat(80)}\n\n`,
  )
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly author?: unknown
  readonly repository?: unknown
}

function noticeOf(folder: string): string {
  const { name, version, license, author, repository }: Manifest = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  ) as Manifest
  const files = readdirSync(folder).filter((file) => licenceFile.test(file))
  if (license === undefined) throw new TypeError(`${folder} names no licence`)
  const texts = files.toSorted().map((file) => readFileSync(join(folder, file), 'utf8').trim())
  // A few packages publish their licence by its name alone.
  const named = `The package holds no licence file. Its package.json says: ${JSON.stringify({ license, author, repository })}`
  return `${name} ${version} (${license})\n\n${files.length === 0 ? named : texts.join('\n\n')}\n`
}

/** The package `node` has the binary of one board in a package of its own, which holds the licence. */
function nodeLicence(root: string): string {
  const places = [join(root, 'node_modules', 'node', 'node_modules'), join(root, 'node_modules')]
  const found = places
    .filter((place) => existsSync(place))
    .flatMap((place) =>
      readdirSync(place)
        .filter((name) => name.startsWith('node-'))
        .map((name) => join(place, name, 'LICENSE')),
    )
    .find((file) => existsSync(file) && readFileSync(file, 'utf8').startsWith('Node.js is licensed'))
  if (found === undefined) throw new TypeError('the licence of Node.js is not in node_modules')
  return found
}
