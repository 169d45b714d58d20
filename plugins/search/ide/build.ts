/**
 * Builds the page of the IDE into one script and one style sheet, each packed twice as browsers take them: `npm run build`
 * does it, and a gateway from sources does it when somebody opens the page first. Named by what they hold, so that browsers
 * keep them. Arguments: the folder to write to.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** @returns the files that were bundled */
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
    // Its fonts are two thirds of the style sheet; those of the device do as well.
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
