/**
 * Parses the search text. All words must occur, in any order. Words in double quotes must be adjacent. A word
 * that ends in * is a prefix. Case and accents are ignored.
 */
import { limits } from '#base/limits/limits.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/**
 * The words as an FTS5 expression.
 * @throws ngsi-ld.bad-request-data if there is no word.
 */
export function matchOf(text: string): string {
  const parts = text.match(/"[^"]*"\*?|[^\s"]+/gu) ?? []
  if (parts.length > limits.indexSearchWords.value)
    throw tooComplex(`search has more than ${limits.indexSearchWords.value} words`)
  const phrases = parts.flatMap((part) => {
    const isPrefix = part.endsWith('*')
    // A NUL character would end the expression.
    const words = part.replaceAll(/["*\p{Cc}]/gu, ' ').trim()
    // Text without letters or digits is not a word.
    return /[\p{L}\p{N}]/u.test(words) ? [`"${words}"${isPrefix ? '*' : ''}`] : []
  })
  if (phrases.filter((phrase) => phrase.endsWith('*')).length > limits.indexSearchPrefixes.value)
    throw tooComplex(`search has more than ${limits.indexSearchPrefixes.value} word prefixes`)
  if (phrases.length === 0) throw badRequestData('must contain at least one word', 'search')
  return phrases.join(' AND ')
}
