/**
 * Selects entities by id, by id pattern and by type expression [NGSI-LD 4.17, 5.2.33]. Type names are
 * core-compacted. Selectors are plain JSON, so that subscriptions can store them.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { isObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkName, checkUri, keyword } from '#ngsi-ld/values/names.ts'
import { badRequestData, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { compileIdPattern, type PatternBudget, storedPattern, textBudget } from '#ngsi-ld/values/pattern.ts'

/** `*`, one type, or all or any of at least two parts. */
export type TypeSelection =
  | { readonly kind: 'any' }
  | { readonly kind: 'type'; readonly name: string }
  | { readonly kind: 'and'; readonly parts: readonly TypeSelection[] }
  | { readonly kind: 'or'; readonly parts: readonly TypeSelection[] }

/** Members are joined by AND; ids take precedence over idPattern. Absent members do not restrict. */
export interface EntitySelector {
  readonly ids?: readonly string[]
  readonly idPattern?: string
  readonly types?: TypeSelection
}

/**
 * Parses a type expression: `A,B` and `A|B` (any), `A;B` (all, binds tighter), parentheses, `*`.
 * @throws GatewayError ngsi-ld.bad-request-data naming the field, ngsi-ld.too-complex beyond the limits.
 */
export function parseTypeSelection(
  text: string,
  expand: (term: string) => string,
  field = 'type',
): TypeSelection {
  if (text.trim() === '*') return { kind: 'any' }
  const tokens = text.match(/[^\s,;|()]+|[,;|()]/g) ?? []
  if (tokens.length > 2 * limits.queryTermsMax.value) throw tooComplex(`${field} contains too many types`)
  let at = 0

  const parseAny = (depth: number): TypeSelection => {
    if (depth > limits.queryNestingMax.value) throw tooComplex(`${field} has too many levels of parentheses`)
    const parts = [parseAll(depth)]
    while (tokens[at] === ',' || tokens[at] === '|') {
      at++
      parts.push(parseAll(depth))
    }
    return join('or', parts)
  }
  const parseAll = (depth: number): TypeSelection => {
    const parts = [parseOne(depth)]
    while (tokens[at] === ';') {
      at++
      parts.push(parseOne(depth))
    }
    return join('and', parts)
  }
  const parseOne = (depth: number): TypeSelection => {
    const token = tokens[at++]
    if (token === undefined || /^[,;|)*]/.test(token))
      throw badRequestData(`expected a type name in "${text}"`, field)
    if (token !== '(') return { kind: 'type', name: checkName(expand(token), field) }
    const inner = parseAny(depth + 1)
    if (tokens[at++] !== ')') throw badRequestData(`missing ) in "${text}"`, field)
    return inner
  }

  const selection = parseAny(0)
  if (at < tokens.length) throw badRequestData(`unexpected ${tokens[at]} in "${text}"`, field)
  return selection
}

function join(kind: 'and' | 'or', parts: readonly TypeSelection[]): TypeSelection {
  const flat = parts.flatMap((part) => (part.kind === kind ? part.parts : [part]))
  return flat.length === 1 ? flat[0]! : { kind, parts: flat }
}

/** The expression as text; parsing the text returns an equal selection. */
export function printTypeSelection(selection: TypeSelection, show: (name: string) => string): string {
  if (selection.kind === 'any') return '*'
  if (selection.kind === 'type') return show(selection.name)
  const print = (part: TypeSelection): string => {
    const text = printTypeSelection(part, show)
    return part.kind === 'or' ? `(${text})` : text
  }
  return selection.parts.map(print).join(selection.kind === 'and' ? ';' : ',')
}

/** Whether the selection includes an entity of these types. */
export function matchesType(selection: TypeSelection, types: string | readonly string[]): boolean {
  switch (selection.kind) {
    case 'any':
      return true
    case 'type':
      return typeof types === 'string' ? types === selection.name : types.includes(selection.name)
    case 'and':
      return selection.parts.every((part) => matchesType(part, types))
    case 'or':
      return selection.parts.some((part) => matchesType(part, types))
  }
}

/** The type names in a selection, without repetition. */
export function typeNamesOf(selection: TypeSelection): readonly string[] {
  if (selection.kind === 'any') return []
  return selection.kind === 'type' ? [selection.name] : [...new Set(selection.parts.flatMap(typeNamesOf))]
}

/** Whether the selector selects an entity. */
export function matchesEntity(
  selector: EntitySelector,
  id: string,
  types: string | readonly string[],
): boolean {
  return compileSelector(selector)(id, types)
}

/** As `matchesEntity`, compiled for repeated use: the pattern is parsed once. */
export function compileSelector(
  { ids, idPattern, types: wanted }: EntitySelector,
  budget: PatternBudget = textBudget,
): (id: string, types: string | readonly string[]) => boolean {
  const known = ids === undefined ? undefined : new Set(ids)
  const pattern = idPattern === undefined ? undefined : storedPattern(idPattern, budget)
  return (id, types) => {
    if (wanted !== undefined && !matchesType(wanted, types)) return false
    if (known !== undefined) return known.has(id)
    return pattern === undefined || pattern.test(id)
  }
}

/**
 * Parses an entity selector of a subscription or query body: type is required, id may be one or several.
 * @throws GatewayError ngsi-ld.bad-request-data naming the member.
 */
export function parseEntitySelector(
  json: Json,
  expand: (term: string) => string,
  field: string,
): EntitySelector {
  if (!isObject(json)) throw badRequestData('must be an object with a type', field)
  const unknown = Object.keys(json).find((member) => !selectorMembers.has(member))
  if (unknown !== undefined)
    throw badRequestData('is not a member of an entity selector', `${field}.${unknown}`)
  const type = keyword(json, 'type')
  const id = keyword(json, 'id')
  const idPattern = own(json, 'idPattern')
  if (typeof type !== 'string')
    throw badRequestData('must be a type or an expression of types', `${field}.type`)
  if (idPattern !== undefined && typeof idPattern !== 'string') {
    throw badRequestData('must be a regular expression', `${field}.idPattern`)
  }
  if (idPattern !== undefined) compileIdPattern(idPattern, `${field}.idPattern`)
  return {
    types: parseTypeSelection(type, expand, `${field}.type`),
    ...(id === undefined ? {} : { ids: parseIds(id, `${field}.id`) }),
    ...(idPattern === undefined ? {} : { idPattern }),
  }
}

const selectorMembers: ReadonlySet<string> = new Set(['type', '@type', 'id', '@id', 'idPattern'])

function parseIds(id: Json, field: string): readonly string[] {
  const ids = listOf(id).map((each) => checkUri(each, field))
  if (ids.length === 0) throw badRequestData('must contain at least one id', field)
  return ids
}

/** The selector in the form that clients send. */
export function renderEntitySelector(
  selector: EntitySelector,
  show: (name: string) => string,
): { readonly [member: string]: Json } {
  const { ids, idPattern, types } = selector
  return {
    ...(ids === undefined ? {} : { id: ids.length === 1 ? ids[0]! : ids }),
    ...(idPattern === undefined ? {} : { idPattern }),
    type: printTypeSelection(types ?? { kind: 'any' }, show),
  }
}
