/**
 * Selects one language of a LanguageProperty (GS CIM 009, 4.5.18 and 6.3.12): ranges as in Accept-Language
 * (RFC 4647, 3.4), best first.
 */

import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { AttributeInstance } from './attribute.ts'

/** A list of preferred languages: ranges, each with an optional weight. */
const preference =
  /^\s*(?:\*|[A-Za-z]{1,8}(?:-(?:\*|[A-Za-z0-9]{1,8}))*|@none)\s*(?:;\s*[qQ]=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/

/** @throws ngsi-ld.bad-request-data unless the text is a list of preferred languages. */
export function checkLanguages(text: string): string {
  if (text.split(',').every((part) => preference.test(part))) return text
  throw badRequestData('must be languages such as en-GB,fr;q=0.5,*;q=0.1', 'lang')
}

/** Language ranges of a `lang` parameter such as `en-GB,fr;q=0.5,*;q=0.1`, in lower case, best first. */
export function languageRanges(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => {
      const [range = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return { range, quality: quality === undefined ? 1 : Number(quality.slice(2)) }
    })
    .filter(({ range, quality }) => range !== '' && quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ range }) => range)
}

/**
 * Key of the language map that matches the ranges best; without a match the default language, else the first.
 */
function pickLanguage(languageMap: JsonObject, ranges: readonly string[]): string | undefined {
  const languages = Object.keys(languageMap)
  for (const range of ranges) {
    if (range === '*') break
    for (let tag = range; tag !== ''; tag = tag.slice(0, Math.max(0, tag.lastIndexOf('-')))) {
      const found =
        languages.find((language) => language.toLowerCase() === tag) ??
        languages.find((language) => language.toLowerCase().startsWith(`${tag}-`))
      if (found !== undefined) return found
    }
  }
  return own(languageMap, '@none') === undefined ? languages[0] : '@none'
}

/** A LanguageProperty as a Property with one text and its language. */
export function inLanguage(instance: AttributeInstance, lang: readonly string[]): AttributeInstance {
  const { languageMap, type, ...members } = instance
  if (type !== 'LanguageProperty' || !isObject(languageMap)) return instance
  const language = pickLanguage(languageMap, lang)
  if (language === undefined) return instance
  return { type: 'Property', value: languageMap[language]!, ...members, lang: language }
}
