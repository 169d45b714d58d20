/**
 * Bundles what runs into `dist/`: the process, its threads, and the process that runs ONNX models, as ES
 * modules for the pinned Node.
 * better-sqlite3 and onnxruntime-node stay outside, since their binaries belong to one kind of board. The version of
 * package.json is fixed into the bundle. Beside it `dist/pages/` gets the pages of search and of the quality analyser, and
 * `dist/THIRD-PARTY-NOTICES.txt` the licences of what was bundled. Nothing else is generated; the sources run as they are, too.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { buildQualityPage } from '#plugins/quality/page/build-quality-page.ts'
import { buildIde } from '#plugins/search/ide/build-ide.ts'
import { noticesOf } from './notices.ts'

const root = join(import.meta.dirname, '..')
const natives = ['better-sqlite3', 'onnxruntime-node']

/**
 * Modules of Node and the native libraries as constants read from them. For an import statement Node would look at all
 * that a module exports, and make what it makes at first sight: 10 ms of a start.
 */
const readOnly: Plugin = {
  name: 'constants of modules that are not bundled',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /./ }, ({ path, kind }) =>
      kind === 'import-statement' && (isBuiltin(path) || natives.includes(path))
        ? { path, namespace: 'outside' }
        : undefined,
    )
    onLoad({ filter: /./, namespace: 'outside' }, ({ path }) => {
      const names = natives.includes(path) ? [] : Object.keys(process.getBuiltinModule(path) as object)
      const constants = names.map((name) => `export const ${name} = /* @__PURE__ */ (() => all.${name})()`)
      return { contents: [`const all = require('${path}')`, 'export default all', ...constants].join('\n') }
    })
  },
}

// Libraries in CommonJS call `require` for Node's own modules; an ES module has to make it first.
const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: {
    main: 'runtime/main.ts',
    'writer-thread': 'runtime/store/writer/writer-thread.ts',
    'backup-thread': 'runtime/store/backup/backup-thread.ts',
    'inference-process': 'runtime/inference/child/inference-process.ts',
    'approach-thread': 'plugins/faults/anomalies/approach-thread.ts',
    'training-thread': 'plugins/patterns/training/training-thread.ts',
    'virtual-sensor-thread': 'plugins/virtual-sensors/training/virtual-sensor-thread.ts',
  },
  outdir: 'dist',
  bundle: true,
  // A third less to read and to hold; names stay, so that traces can be read.
  minifyWhitespace: true,
  lineLimit: 200,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  external: natives,
  plugins: [readOnly],
  banner: { js: banner },
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  write: false,
})

// A gateway may start while this runs: it finds the old file or the new one, never half of one.
const put = (path: string, text: string): void => {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}
mkdirSync(join(root, 'dist'), { recursive: true })
for (const { path, text } of outputFiles) put(path, ascii(text))

const pages = join(root, 'dist', 'pages')
const bundled = [
  ...Object.keys(metafile.inputs),
  ...(await buildIde(join(pages, 'search'))),
  ...(await buildQualityPage(join(pages, 'quality'))),
]
put(
  join(root, 'dist', 'THIRD-PARTY-NOTICES.txt'),
  noticesOf(root, bundled.map(fromRoot), [...natives, 'onnxruntime-common']),
)

function fromRoot(input: string): string {
  return resolve(root, input)
}

/**
 * One character beyond Latin-1 would make the engine hold the whole source in two bytes each, 2.4 MB more. The bundler
 * escapes those in strings; in regular expressions and comments the same escape means the same.
 */
function ascii(text: string): string {
  return text.replace(/[^\x00-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
