/**
 * Reads the settings file, YAML or JSON, into a plain value. The YAML library is loaded only for a YAML file,
 * because it needs more memory than the rest of this room. Keys stay text as written, so that a device id
 * like 0012 keeps its zeros.
 */
import { readFileSync, statSync } from 'node:fs'
import { limits } from '#base/limits/limits.ts'
import type { Mistake } from '#config/schema/mistakes.ts'

export interface FileResult {
  /** Undefined if there are mistakes. */
  readonly value?: unknown
  readonly mistakes: readonly Mistake[]
}

/** Never throws: an unreadable or invalid file is reported as mistakes. */
export async function readSettingsFile(file: string): Promise<FileResult> {
  const refuse = (expected: string, source = file): FileResult => ({
    mistakes: [{ path: '', expected, source }],
  })
  let text: string
  try {
    const facts = statSync(file)
    if (facts.isDirectory()) return refuse('a file, not a folder')
    if (facts.size > limits.settingsBytesMax.value) {
      return refuse(`a file of at most ${limits.settingsBytesMax.value} bytes`)
    }
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return refuse('a settings file that exists')
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return refuse('text in UTF-8')
    if (code === 'EACCES') return refuse('a file that this user may read (permission denied)')
    return refuse(`a readable file (${code ?? String(error)})`)
  }
  return file.endsWith('.json') ? readJson(text, refuse) : readYaml(text, file)
}

function readJson(text: string, refuse: (expected: string) => FileResult): FileResult {
  try {
    return { value: JSON.parse(text), mistakes: [] }
  } catch (error) {
    return refuse(`JSON (${(error as Error).message})`)
  }
}

async function readYaml(text: string, file: string): Promise<FileResult> {
  const { isScalar, LineCounter, parseDocument, visit } = (await import('yaml')).default
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, prettyErrors: false })
  const first = document.errors[0]
  if (first !== undefined) {
    const { line, col } = lineCounter.linePos(first.pos[0])
    const source = `${file}, line ${line}, column ${col}`
    return { mistakes: [{ path: '', expected: `YAML (${first.message})`, source }] }
  }
  visit(document, {
    Pair: (_, { key }) => {
      if (isScalar(key) && typeof key.value !== 'string' && key.source !== undefined) key.value = key.source
    },
  })
  try {
    return { value: document.toJS({ maxAliasCount: 100 }), mistakes: [] }
  } catch (error) {
    return { mistakes: [{ path: '', expected: `YAML (${(error as Error).message})`, source: file }] }
  }
}
