/**
 * Bundles the IDE page into one script and one style sheet, each compressed with Brotli and gzip. Runs in
 * `npm run build`, or when a user first opens the page of a gateway that runs from sources. File names
 * include a content hash, so that browsers can cache them. Argument: the output folder.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** @returns the bundled source files */
export async function buildIde(folder: string): Promise<readonly string[]> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: import.meta.dirname,
    entryPoints: [join(import.meta.dirname, 'page.js')],
    outdir: folder,
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
    // Web fonts are two thirds of the style sheet; system fonts replace them.
    const contents = ending === '.css' ? text.replace(/@font-face\s*\{[^}]*\}/g, '') : text
    const name = `page-${createHash('sha256').update(contents).digest('hex').slice(0, 12)}${ending}`
    write(`${name}.br`, brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }))
    write(`${name}.gz`, gzipSync(contents, { level: 9 }))
    return name
  })
  write('page.html', pageOf(names))
  for (const old of readdirSync(folder)) if (!written.has(old)) rmSync(join(folder, old), { recursive: true })
  return Object.keys(metafile.inputs).map((input) => join(import.meta.dirname, input))
}

const pageOf = (names: readonly string[]): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Selvedge search</title>
<link rel="icon" href="data:,">
${names
  .filter((name) => name.endsWith('.css'))
  .map((name) => `<link rel="stylesheet" href="ide/${name}">`)
  .join('\n')}
<style>html, body, #ide { height: 100%; margin: 0 }</style>
</head>
<body>
<div id="ide">Loading</div>
${names
  .filter((name) => name.endsWith('.js'))
  .map((name) => `<script src="ide/${name}"></script>`)
  .join('\n')}
</body>
</html>
`

if (import.meta.main) await buildIde(process.argv[2]!)
