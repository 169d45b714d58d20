/**
 * Free text as the index reads it: all words have to be there, in any order; one in double quotes with others must stand
 * together with them; a word that ends in * is the beginning of one. Letters are compared without case and accents.
 */
import { limits } from '#base/limits/limits.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/**
 * The words as an expression of FTS5.
 * @throws ngsi-ld.bad-request-data without a single word.
 */
export function matchOf(text: string): string {
  const parts = text.match(/"[^"]*"\*?|[^\s"]+/gu) ?? []
  if (parts.length > limits.indexSearchWords.value)
    throw tooComplex(`search has more than ${limits.indexSearchWords.value} words`)
  const phrases = parts.flatMap((part) => {
    const isPrefix = part.endsWith('*')
    // A NUL would end the expression.
    const words = part.replaceAll(/["*\p{Cc}]/gu, ' ').trim()
    // What has no letter and no digit is no word.
    return /[\p{L}\p{N}]/u.test(words) ? [`"${words}"${isPrefix ? '*' : ''}`] : []
  })
  if (phrases.filter((phrase) => phrase.endsWith('*')).length > limits.indexSearchPrefixes.value)
    throw tooComplex(`search has more than ${limits.indexSearchPrefixes.value} beginnings of words`)
  if (phrases.length === 0) throw badRequestData('has no word', 'search')
  return phrases.join(' AND ')
}
