/**
 * Bundles what runs into `dist/`: the process and its two threads, as ES modules for the pinned Node.
 * better-sqlite3 stays outside, since its native binary belongs to one kind of board. The version of
 * package.json is fixed into the bundle. Beside it `dist/ide/` gets the page of the search enabler. Nothing else is
 * generated; the sources run as they are, too.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { buildIde } from '#plugins/search/ide/build.ts'

const root = join(import.meta.dirname, '..')

// Libraries in CommonJS call `require` for Node's own modules; an ES module has to make it first.
const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: {
    main: 'runtime/main.ts',
    'writer-thread': 'runtime/store/writer-thread.ts',
    'backup-thread': 'runtime/store/backup-thread.ts',
  },
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  external: ['better-sqlite3'],
  banner: { js: banner },
  legalComments: 'none',
  logLevel: 'warning',
  write: false,
})

// A gateway may start while this runs: it finds the old file or the new one, never half of one.
mkdirSync(join(root, 'dist'), { recursive: true })
for (const { path, text } of outputFiles) {
  writeFileSync(`${path}.new`, ascii(text))
  renameSync(`${path}.new`, path)
}

await buildIde(join(root, 'dist', 'ide'))

/**
 * One character beyond Latin-1 would make the engine hold the whole source in two bytes each, 2.4 MB more. The bundler
 * escapes those in strings; in regular expressions and comments the same escape means the same.
 */
function ascii(text: string): string {
  return text.replace(/[^\x00-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
