/**
 * Bundles what runs into `dist/`: the process and its writer's thread, as two ES modules for the pinned Node.
 * better-sqlite3 stays outside, since its native binary belongs to one kind of board. The version of
 * package.json is fixed into the bundle. Nothing else is generated; the sources run as they are, too.
 */
import { rmSync } from 'node:fs'
import { build } from 'esbuild'

const root = new URL('..', import.meta.url).pathname
rmSync(`${root}dist`, { recursive: true, force: true })

// Libraries in CommonJS call `require` for Node's own modules; an ES module has to make it first.
const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

await build({
  absWorkingDir: root,
  entryPoints: { main: 'runtime/main.ts', 'writer-thread': 'runtime/store/writer-thread.ts' },
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  external: ['better-sqlite3'],
  banner: { js: banner },
  legalComments: 'none',
  logLevel: 'warning',
})
