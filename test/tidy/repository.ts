/**
 * What surrounds the code: documents that must be true, records without gaps, and nothing in any file that only
 * makes sense on one machine.
 */
import { absentOptionals } from '#scripts/complete-lock.ts'
import { referencePages } from '#scripts/document.ts'
import { commentsOf } from './prose.ts'
import { isProduct, type TreeFile } from './tree.ts'

const fileBytesMax = 200 * 1024

/** Data that is large by nature, with the reason beside it. */
const largeFiles: Readonly<Record<string, string>> = {}

export function hugeFiles(files: readonly TreeFile[]): string[] {
  return files
    .filter(({ path, bytes }) => bytes > fileBytesMax && largeFiles[path] === undefined)
    .map(({ path, bytes }) => `${path} has ${bytes} bytes, at most ${fileBytesMax}`)
}

/** Paths of a developer's machine and hosts of package registries. */
export function machineTraces(files: readonly TreeFile[]): string[] {
  const patterns = [
    /(?<![\w./-])\/(work|root|home|Users)\/[\w.-]/,
    /\bregistry\.[a-z0-9-]+\.[a-z]+/,
    /\b[a-z0-9.-]+\/artifactory\b/,
  ]
  return files.flatMap(({ path, text }) => {
    const hit = patterns.map((pattern) => pattern.exec(text)?.[0]).find((found) => found !== undefined)
    return hit === undefined ? [] : [`${path} names ${hit}`]
  })
}

/** The lock file names packages and digests, never where they came from. */
export const lockedHosts = (lock: string): string[] =>
  [...lock.matchAll(/"resolved": "[^"]+"/g)].map(([hit]) => hit)

/** Without the optional packages of every platform, `npm ci` refuses the lock file. */
export const lockedGaps = (lock: string): string[] =>
  absentOptionals((JSON.parse(lock) as { packages: Record<string, object> }).packages).map(
    ({ path }) => `package-lock.json lacks ${path}: run scripts/complete-lock.ts`,
  )

/** Decision records count from 0001 without gaps or twins, and each states its four parts. */
export function brokenRecords(files: readonly TreeFile[]): string[] {
  const records = files
    .filter(({ path }) => path.startsWith('docs/decisions/'))
    .toSorted((a, b) => a.path.localeCompare(b.path))
  return records.flatMap(({ path, text }, index) => {
    const number = String(index + 1).padStart(4, '0')
    if (!new RegExp(`^docs/decisions/${number}-[a-z0-9-]+\\.md$`).test(path))
      return [`${path} should be ${number}-title.md`]
    const missing = ['Context', 'Decision', 'Consequences', 'Alternatives'].filter(
      (part) => !text.includes(`\n## ${part}\n`),
    )
    return missing.map((part) => `${path} lacks "## ${part}"`)
  })
}

/** Lines of the change log stand below a version and a section of it; paragraphs name the part of the product. */
export function oddChangelogLines(text: string): string[] {
  return text.split('\n').filter((line, index) => {
    const isHead =
      index === 0
        ? line === '# Changelog'
        : /^## \d+\.\d+\.\d+ \((unreleased|\d{4}-\d{2}-\d{2})\)$/.test(line) ||
          /^### (Added|Changed|Fixed|Security|Performance)$/.test(line)
    const isLine = /^- \S/.test(line) || /^ {2}\S/.test(line)
    return !(line === '' || isHead || isLine || /^[A-Z]/.test(line))
  })
}

/** The commands a document promises by `npm run x`, `npm test` or `npm start` that package.json lacks. */
export function absentScripts(
  files: readonly TreeFile[],
  scripts: Readonly<Record<string, string>>,
): string[] {
  const documents = files.filter(({ path }) => path.endsWith('.md'))
  return documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\bnpm (?:run ([a-z][\w:-]*)|(test|start)\b)/g)]
      .map(([, run, short]) => run ?? short!)
      .filter((name) => scripts[name] === undefined)
      .map((name) => `${path} names npm script ${name}, which does not exist`),
  )
}

/** Relative links of documents that lead nowhere. */
export function deadLinks(files: readonly TreeFile[]): string[] {
  const paths = files.map(({ path }) => path)
  const exists = (path: string): boolean => paths.some((one) => one === path || one.startsWith(`${path}/`))
  return files
    .filter(({ path }) => path.endsWith('.md'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)/g)]
        .map(([, link]) => new URL(link!, `file:///${path}`).pathname.slice(1).replace(/\/$/, ''))
        .filter((target) => !exists(target))
        .map((target) => `${path} links to ${target}, which does not exist`),
    )
}

/** Source files that a document names, as `room/file.ts` or by their whole path, and that do not exist. */
export function deadPaths(files: readonly TreeFile[]): string[] {
  const paths = new Set(files.map(({ path }) => path))
  return files
    .filter(({ path }) => path.endsWith('.md'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/`([a-z-]+\/[\w./-]+\.(?:ts|sh|yaml|service))`/g)]
        .map(([, named]) => named!)
        .filter((named) => !paths.has(named) && !paths.has(`runtime/${named}`))
        .map((named) => `${path} names ${named}, which does not exist`),
    )
}

/** Files that comments of the product name, in backticks: each is a file, or the end of its path. */
export function deadPointers(files: readonly TreeFile[]): string[] {
  const ends = new Set(
    files.flatMap(({ path }) => {
      const parts = path.split('/')
      return parts.map((_, i) => parts.slice(i).join('/'))
    }),
  )
  return files.filter(isProduct).flatMap((one) =>
    commentsOf(one)
      .flatMap((comment) => [...comment.matchAll(/`([\w./-]*\w\.ts)`/g)].map(([, named]) => named!))
      .filter((named) => !ends.has(named))
      .map((named) => `${one.path} names ${named}, which does not exist`),
  )
}

/** Generated pages that differ from what the code says today. */
export function stalePages(files: readonly TreeFile[]): string[] {
  const texts = new Map(files.map(({ path, text }) => [path, text]))
  return [...referencePages()]
    .filter(([path, text]) => texts.get(path) !== text)
    .map(([path]) => `${path} is stale: run npm run document`)
}
