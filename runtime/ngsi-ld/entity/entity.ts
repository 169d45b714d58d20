/**
 * The entity value: how the gateway represents an NGSI-LD entity, and how it parses one from unknown JSON.
 *
 * Names are *core-compacted*: terms of the core context and of the default context
 * (https://uri.etsi.org/ngsi-ld/default-context/) are short, every other name is a full IRI. Each IRI has
 * exactly one such name, so names compare as strings. Attributes are in normalized representation without
 * createdAt, modifiedAt and instanceId, which are stored beside the document.
 */

import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkAttributeName, checkScope, checkUri, keyword, ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import {
  type Attribute,
  type AttributeInstance,
  checkDateTime,
  gather,
  gathered,
  type ParsedAttributes,
  readAttribute,
  readPartial,
  readTypes,
  systemMembers,
} from './attribute.ts'
import { checkGeoName, checkSeals, type ParseRules } from './attribute-kind.ts'

export interface Entity {
  readonly id: string
  readonly type: string | readonly string[]
  readonly scope?: string | readonly string[]
  /** Canonical DateTime at which the entity expires (since 1.9). */
  readonly expiresAt?: string
  readonly [name: string]: Attribute | string | readonly string[] | undefined
}

/** Attributes of a request body without id: the input of append, update and merge. */
export interface Fragment {
  readonly type?: string | readonly string[]
  readonly scope?: string | readonly string[]
  readonly expiresAt?: string
  readonly [name: string]: Attribute | string | readonly string[] | undefined
}

/** Accepted forms of a body. Normalized and concise are always accepted. */
export interface ParseOptions {
  /** Id from the path; a body with a different id is rejected. */
  readonly id?: string | undefined
  /** Values are bare, as with `options=keyValues`. */
  readonly simplified?: boolean | undefined
  /** Whether a fragment may contain no attributes: merging an empty fragment changes nothing. */
  readonly empty?: boolean | undefined
  /** Whether NGSI-LD Null may mark values to delete: in update and partial update. */
  readonly nulls?: boolean | undefined
  /** Whether the body is merged: NGSI-LD Null is allowed everywhere, and attributes may lack their values. */
  readonly merging?: boolean | undefined
}

export const tooManyAttributes = (key: string): Error =>
  badRequestData(`an entity may have at most ${limits.attributesPerEntityMax.value} attributes`, key)

/** Names of the attributes of an entity or fragment: all members except id, type, scope and expiresAt. */
export const attributeNames = (entity: Entity | Fragment): string[] =>
  Object.keys(entity).filter((name) => !isEntityMember(name))

/** Whether a member belongs to the entity itself, and is not an attribute. */
export const isEntityMember = (name: string): boolean =>
  name === 'id' || name === 'type' || name === 'scope' || name === 'expiresAt'

/** Instances of the attribute with this name; empty if there is no such attribute. */
export function instancesOf(entity: Entity | Fragment, name: string): readonly AttributeInstance[] {
  const attribute = own(entity, name) as Attribute | undefined
  if (attribute === undefined) return []
  return listOf<AttributeInstance>(attribute)
}

/**
 * Parses an entity with id and type.
 * @throws ngsi-ld.bad-request-data naming the invalid member by its name in the body.
 */
export function parseEntity(json: unknown, context: Context, options: ParseOptions = {}): Entity {
  const body = objectOf(json, 'an entity')
  const id = readId(body, options)
  if (id === undefined) throw badRequestData('is missing', 'id')
  const type = readTypes(keyword(body, 'type'), 'type', { context })
  return readAttributes(body, { id, type }, rulesOf(context, options)) as Entity
}

/**
 * Parses the attributes of an entity. The id is optional; types and scopes are kept, because updates add
 * them.
 * @throws ngsi-ld.bad-request-data naming the invalid member, or if the body is empty.
 */
export function parseFragment(json: unknown, context: Context, options: ParseOptions = {}): Fragment {
  const body = objectOf(json, 'a fragment of an entity')
  readId(body, options)
  const type = keyword(body, 'type')
  const members: Record<string, Json> =
    type === undefined ? {} : { type: readTypes(type, 'type', { context }) }
  const fragment = readAttributes(body, members, rulesOf(context, options))
  if (Object.keys(fragment).length === 0 && options.empty !== true)
    throw badRequestData('must contain at least one attribute')
  return fragment as Fragment
}

/** Parses the complete attribute `name` (canonical) from a body that contains only its members. */
export function parseAttribute(
  json: unknown,
  name: string,
  context: Context,
  options: ParseOptions = {},
): Attribute {
  const attribute = readAttribute(json as Json, name, rulesOf(context, options), 1)
  for (const instance of listOf<AttributeInstance>(attribute)) {
    checkSeals(name, instance, name)
    checkGeoName(name, instance)
  }
  return attribute
}

/** Parses a partial update of the attribute `name`: canonical members, a type only if the body has one. */
export function parsePartial(json: unknown, name: string, context: Context): JsonObject {
  const body = withoutContext(objectOf(json, 'an attribute'))
  const partial = readPartial(body, name, rulesOf(context, { nulls: true }))
  checkSeals(name, partial, name)
  return partial
}

const rulesOf = (
  context: Context,
  { nulls = false, merging = false, simplified = false }: ParseOptions,
): ParseRules => ({ context, nulls: nulls || merging, merging, simplified })

function objectOf(json: unknown, what: string): JsonObject {
  if (!isObject(json)) throw badRequestData(`must be ${what}: a JSON object`, 'body')
  return json
}

/** A body without its @context. */
export function withoutContext<T>(body: T): T | JsonObject {
  if (!isObject(body) || !Object.hasOwn(body, '@context')) return body
  const { '@context': _, ...rest } = body
  return rest
}

function readId(body: JsonObject, options: ParseOptions): string | undefined {
  const id = keyword(body, 'id')
  if (id === undefined) return options.id
  const uri = checkUri(id, 'id')
  if (options.id !== undefined && uri !== options.id)
    throw badRequestData(`must be ${options.id}, as in the path`, 'id')
  return uri
}

function readAttributes(body: JsonObject, members: Record<string, Json>, rules: ParseRules): JsonObject {
  const gathering: ParsedAttributes = { members }
  let count = 0
  for (const key of Object.keys(body)) {
    if (key === '@context') continue
    const name = rules.context.expand(key)
    const value = body[key]!
    if (name === 'id' || name === 'type' || (systemMembers.has(name) && !isObject(value))) continue
    if (name === 'scope') {
      members['scope'] = value === ngsiLdNull && rules.nulls ? value : (checkScope(value) as Json)
    } else if (name === 'expiresAt') {
      members[name] = value === ngsiLdNull && rules.nulls ? value : checkDateTime(value, key)
    } else {
      if (++count > limits.attributesPerEntityMax.value) throw tooManyAttributes(key)
      gather(gathering, checkAttributeName(name, key), readAttribute(value, key, rules, 2))
    }
  }
  const fragment = gathered(gathering)
  // An attribute to merge may lack its type; its kind is checked after the merge.
  if (!rules.merging) checkGeoNames(fragment as Fragment)
  return fragment
}

function checkGeoNames(fragment: Fragment): void {
  for (const name of attributeNames(fragment))
    for (const instance of instancesOf(fragment, name)) checkGeoName(name, instance)
}
