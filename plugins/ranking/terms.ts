/**
 * Parses the text of weights in its three forms: `name:0.4,other:0.6`, a JSON object, or
 * `rankWeights[name]=0.4` as in the original component. A `-` before a name means that small values are good.
 * `ranked-query.ts` finds the parameters with weights. Pure functions; errors name the invalid term.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { textNumber } from './value.ts'

export interface WrittenTerm {
  readonly name: string
  readonly weight: number
  readonly isFalling: boolean
}

/** Each parameter with weights, decoded: `weights`, or `rankWeights[name]`. */
export type WeightParameters = readonly { readonly name: string; readonly value: string }[]

/** @throws ngsi-ld.bad-request-data with the invalid term. */
export function parseTerms(given: WeightParameters): readonly WrittenTerm[] {
  if (given.filter(({ name }) => name === 'weights').length > 1)
    throw badRequestData('is given twice', 'weights')
  const written = given.flatMap(({ name, value }) =>
    name === 'weights' ? listedIn(value) : [[bracketed(name), value, name] as const],
  )
  if (written.length > limits.rankingTermsMax.value)
    throw badRequestData(`has ${written.length} terms, at most ${limits.rankingTermsMax.value}`, 'weights')
  const terms = written.map(([name, value, field]) => termOf(name, value, field))
  const twice = terms.find(({ name }, at) => terms.findIndex((other) => other.name === name) < at)
  if (twice !== undefined) throw badRequestData(`${shown(twice.name)} has two weights`, 'weights')
  return terms
}

type Written = readonly [name: string, value: Json, field: string]

function bracketed(parameter: string): string {
  const [, name] = /^rankWeights\[(.*)\]$/s.exec(parameter) ?? []
  if (name === undefined)
    throw badRequestData('requires a name in brackets: rankWeights[name]=0.5', 'rankWeights')
  return name
}

function listedIn(text: string): readonly Written[] {
  if (text.trim() === '')
    throw badRequestData('must name at least one property: name:0.4,other:0.6', 'weights')
  if (text.trimStart().startsWith('{')) return membersOf(text)
  return text.split(',').map((part): Written => {
    const colon = part.lastIndexOf(':')
    if (colon === -1)
      throw badRequestData(`${shown(part)} has no weight; expected ${part.trim()}:0.5`, 'weights')
    return [part.slice(0, colon), part.slice(colon + 1), 'weights']
  })
}

function membersOf(text: string): readonly Written[] {
  const json = parsedJson(text)
  if (json === undefined) throw badRequestData('starts with { but is not valid JSON', 'weights')
  const members = isObject(json) ? Object.entries(json) : []
  if (members.length === 0) throw badRequestData('must name at least one property: {"name": 0.4}', 'weights')
  return members.map(([name, value]): Written => [name, value, 'weights'])
}

function termOf(written: string, value: Json, field: string): WrittenTerm {
  const isFalling = written.trim().startsWith('-')
  const name = written.trim().slice(isFalling ? 1 : 0)
  if (name === '') throw badRequestData(`the name before ${shown(value)} is empty`, field)
  if (name.length > limits.nameCharactersMax.value)
    throw badRequestData(
      `${shown(name)} is longer than ${limits.nameCharactersMax.value} characters`,
      'weights',
    )
  const weight =
    typeof value === 'number' ? value : typeof value === 'string' ? textNumber(value) : Number.NaN
  if (!Number.isFinite(weight) || Math.abs(weight) > limits.rankingWeightMax.value) {
    const most = limits.rankingWeightMax.value
    throw badRequestData(
      `the weight of ${shown(name)} must be a number up to ${most}, got ${shown(value)}`,
      'weights',
    )
  }
  return { name, weight, isFalling }
}

const shown = (value: Json): string =>
  (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200)
