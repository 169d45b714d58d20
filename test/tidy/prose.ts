/**
 * The prose of comments: how sentences begin, words that are no terms of the field, the spelling -ize, names, and lengths of sentences and lines.
 * A comment is split into sentences at full stops, colons, semicolons, question and exclamation marks.
 */
import { isProduct, type TreeFile } from './tree.ts'

const wordsMax = 25
const columnsMax = 110

/** File names that stand for one idea in every folder that has them. */
const sharedNames: ReadonlySet<string> = new Set(['plugin.ts', 'decoder.ts', 'registry.ts'])

const openings = /^(Who|Whoever|Whose|Whom|What|Whatever|The same|That which|Of|None)\b(?!.*\?$)/
const dialect =
  /\b(told|tells?|over there|went|gone|came again|is laid|lets? go|letting go|(?:normal|recogn|local|synchron|serial|organ|initial)is(?:e[ds]?|ing|ation))\b/i

/** The text of each comment of a file, without stars and slashes. Strings and templates are no comments. */
export function commentsOf({ text }: Pick<TreeFile, 'text'>): string[] {
  const token =
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|((?:^[ \t]*\/\/[^\n]*\n)+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)/gm
  return [...text.matchAll(token)].flatMap(([, comment]) => (comment === undefined ? [] : [comment]))
}

/** Sentences of a comment, without tags, examples in backticks and sources in brackets. */
export function sentencesOf(comment: string): string[] {
  const prose = comment
    .replace(/^\s*\/\*\*?|\*\/\s*$/g, '')
    .replace(/^[ \t]*(\*|\/\/) ?/gm, '')
    .replace(/```[\s\S]*?```/g, '')
    .replace(/^\s*[-|].*$/gm, '. ')
    .replace(/@\w+/g, '. ')
    .replace(/`[^`\n]*`/g, 'code')
    .replace(/\[[^\]]*\]|\([^()]*\)/g, '')
  return prose
    .split(/(?<=[.;:!?])\s+|\n\s*\n/)
    .map((sentence) => sentence.replaceAll(/\s+/g, ' ').trim())
    .filter((sentence) => /[a-z]{2}/.test(sentence))
}

export function dialectSentences(files: readonly TreeFile[]): string[] {
  return files.filter(isProduct).flatMap((one) =>
    commentsOf(one)
      .flatMap(sentencesOf)
      .flatMap((sentence) => {
        const word = openings.exec(sentence) ?? dialect.exec(sentence)
        return word === null ? [] : [`${one.path}: "${word[0]}" in: ${sentence.slice(0, 100)}`]
      }),
  )
}

export function longSentences(files: readonly TreeFile[]): string[] {
  return files.filter(isProduct).flatMap((one) =>
    commentsOf(one)
      .flatMap(sentencesOf)
      .filter((sentence) => sentence.split(' ').length > wordsMax)
      .map((sentence) => `${one.path}: ${sentence.split(' ').length} words: ${sentence.slice(0, 100)}`),
  )
}

export function wideComments(files: readonly TreeFile[]): string[] {
  return files
    .filter(isProduct)
    .flatMap(({ path, text }) =>
      text
        .split('\n')
        .flatMap((line, i) =>
          line.length > columnsMax && /^\s*(\*|\/\/|\/\*\*)/.test(line)
            ? [`${path}:${i + 1} is ${line.length} columns wide, at most ${columnsMax}`]
            : [],
        ),
    )
}

/** A name of a file means one thing. */
export function ambiguousNames(files: readonly TreeFile[]): string[] {
  const byName = Map.groupBy(files.filter(isProduct), ({ path }) => path.split('/').at(-1)!)
  return [...byName]
    .filter(([name, all]) => all.length > 1 && !sharedNames.has(name))
    .map(([name, all]) => `${name} names ${all.map(({ path }) => path).join(' and ')}`)
}

/** Types that mean the same in a room and in a plugin, which cannot import it. */
const sharedTypes: ReadonlySet<string> = new Set(['Paging', 'Parameters'])

/** A name of an exported type means one thing. */
export function ambiguousTypes(files: readonly TreeFile[]): string[] {
  const types = files
    .filter(isProduct)
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => ({ path, name: name! })),
    )
  return [...Map.groupBy(types, ({ name }) => name)]
    .filter(([name, all]) => all.length > 1 && !sharedTypes.has(name))
    .map(([name, all]) => `${name} is a type of ${all.map(({ path }) => path).join(' and of ')}`)
}
