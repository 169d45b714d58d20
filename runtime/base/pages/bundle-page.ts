/**
 * Bundles a web page of a plugin into one script and one style sheet, each compressed with Brotli and gzip.
 * Runs in `npm run build`, or when a user first opens the page of a gateway that runs from sources. File
 * names include a content hash, so that browsers can cache them.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

export interface PageSource {
  /** The script of the page; it imports its style sheets. */
  readonly script: string
  readonly title: string
  /** HTML of the body. */
  readonly body: string
  /** Path of the files, relative to the page. */
  readonly path: string
}

/** @returns the bundled source files */
export async function bundlePage(source: PageSource, folder: string): Promise<readonly string[]> {
  const root = dirname(source.script)
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [source.script],
    outdir: folder,
    entryNames: 'page',
    bundle: true,
    minify: true,
    format: 'iife',
    platform: 'browser',
    target: ['chrome100', 'firefox100', 'safari15'],
    define: { 'process.env.NODE_ENV': '"production"' },
    legalComments: 'none',
    logLevel: 'error',
    metafile: true,
    write: false,
  })
  mkdirSync(folder, { recursive: true })
  const written = new Set<string>()
  const write = (name: string, bytes: string | Uint8Array): void => {
    writeFileSync(join(folder, `${name}.new`), bytes)
    renameSync(join(folder, `${name}.new`), join(folder, name))
    written.add(name)
  }
  const names = outputFiles.map(({ path, text }) => {
    const ending = path.slice(path.lastIndexOf('.'))
    // Web fonts are two thirds of the IDE's style sheet; system fonts replace them.
    const contents = ending === '.css' ? text.replace(/@font-face\s*\{[^}]*\}/g, '') : text
    const name = `page-${createHash('sha256').update(contents).digest('hex').slice(0, 12)}${ending}`
    write(`${name}.br`, brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }))
    write(`${name}.gz`, gzipSync(contents, { level: 9 }))
    return name
  })
  write('page.html', htmlOf(source, names))
  for (const old of readdirSync(folder)) if (!written.has(old)) rmSync(join(folder, old), { recursive: true })
  return Object.keys(metafile.inputs).map((input) => join(root, input))
}

const htmlOf = ({ title, body, path }: PageSource, names: readonly string[]): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
${names
  .filter((name) => name.endsWith('.css'))
  .map((name) => `<link rel="stylesheet" href="${path}/${name}">`)
  .join('\n')}
</head>
<body>
${body}
${names
  .filter((name) => name.endsWith('.js'))
  .map((name) => `<script src="${path}/${name}"></script>`)
  .join('\n')}
</body>
</html>
`
