/**
 * The entity value: what an NGSI-LD entity is inside the gateway, and how unknown JSON becomes one.
 *
 * Names are *core-compacted*: terms of the core context and of the default context
 * (https://uri.etsi.org/ngsi-ld/default-context/) are short, every other name is a full IRI. Each IRI has exactly
 * one such name, so names compare as strings. Attributes are in normalized representation without createdAt,
 * modifiedAt and instanceId, which live beside the document.
 */

import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import { checkAttributeName, checkScope, checkUri, keyword, ngsiLdNull } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Attribute, AttributeInstance } from './attribute.ts'
import {
  checkDateTime,
  type Gathering,
  gather,
  gathered,
  readAttribute,
  readPartial,
  readTypes,
  systemMembers,
} from './attribute.ts'
import { checkGeoName, checkSeals, type Reading } from './attribute-kind.ts'

export interface Entity {
  readonly id: string
  readonly type: string | readonly string[]
  readonly scope?: string | readonly string[]
  /** Canonical DateTime from which on there is no such entity (since 1.9). */
  readonly expiresAt?: string
  readonly [name: string]: Attribute | string | readonly string[] | undefined
}

/** Attributes of a request body without id: what append, update and merge take. */
export interface Fragment {
  readonly type?: string | readonly string[]
  readonly scope?: string | readonly string[]
  readonly expiresAt?: string
  readonly [name: string]: Attribute | string | readonly string[] | undefined
}

/** How a body may be written. Normalized and concise are always understood. */
export interface ParseOptions {
  /** Id of the path; a body with another one is refused. */
  readonly id?: string | undefined
  /** Values are bare, as with `options=keyValues`. */
  readonly simplified?: boolean | undefined
  /** A fragment may name no attribute at all: merging nothing changes nothing. */
  readonly empty?: boolean | undefined
  /** NGSI-LD Null may stand for values to delete: in update and partial update. */
  readonly nulls?: boolean | undefined
  /** The body is merged: NGSI-LD Null may stand anywhere, and attributes may lack their values. */
  readonly merging?: boolean | undefined
}

/** Names of the attributes of an entity or fragment: every member but those that are of the entity itself. */
export const attributeNames = (entity: Entity | Fragment): string[] =>
  Object.keys(entity).filter((name) => !isEntityMember(name))

/** Whether a member is of the entity itself, and no attribute. */
export const isEntityMember = (name: string): boolean =>
  name === 'id' || name === 'type' || name === 'scope' || name === 'expiresAt'

/** Instances of the attribute of that name; none when there is no such attribute. */
export function instancesOf(entity: Entity | Fragment, name: string): readonly AttributeInstance[] {
  const attribute = own(entity, name) as Attribute | undefined
  if (attribute === undefined) return []
  return listOf<AttributeInstance>(attribute)
}

/**
 * An entity with id and type.
 * @throws ngsi-ld.bad-request-data naming the member at fault, by the name the body gives it.
 */
export function parseEntity(json: unknown, context: Context, options: ParseOptions = {}): Entity {
  const body = objectOf(json, 'an entity')
  const id = readId(body, options)
  if (id === undefined) throw badRequestData('is missing', 'id')
  const type = readTypes(keyword(body, 'type'), 'type', { context })
  return readAttributes(body, { id, type }, readingOf(context, options)) as Entity
}

/**
 * The attributes of an entity. An id is not needed; types and scopes are kept, since updates add them.
 * @throws ngsi-ld.bad-request-data naming the member at fault, or when there is nothing in the body.
 */
export function parseFragment(json: unknown, context: Context, options: ParseOptions = {}): Fragment {
  const body = objectOf(json, 'a fragment of an entity')
  readId(body, options)
  const type = keyword(body, 'type')
  const members: Record<string, Json> =
    type === undefined ? {} : { type: readTypes(type, 'type', { context }) }
  const fragment = readAttributes(body, members, readingOf(context, options))
  if (Object.keys(fragment).length === 0 && options.empty !== true) throw badRequestData('names no attribute')
  return fragment as Fragment
}

/** The whole attribute `name` (canonical) from what holds only its members. */
export function parseAttribute(
  json: unknown,
  name: string,
  context: Context,
  options: ParseOptions = {},
): Attribute {
  const attribute = readAttribute(json as Json, name, readingOf(context, options), 1)
  for (const instance of listOf<AttributeInstance>(attribute)) {
    checkSeals(name, instance, name)
    checkGeoName(name, instance)
  }
  return attribute
}

/** What a partial update gives for the attribute `name`: canonical members, a type only when the body has one. */
export function parsePartial(json: unknown, name: string, context: Context): JsonObject {
  const body = withoutContext(objectOf(json, 'an attribute'))
  const partial = readPartial(body, name, readingOf(context, { nulls: true }))
  checkSeals(name, partial, name)
  return partial
}

const readingOf = (
  context: Context,
  { nulls = false, merging = false, simplified = false }: ParseOptions,
): Reading => ({ context, nulls: nulls || merging, merging, simplified })

function objectOf(json: unknown, what: string): JsonObject {
  if (!isObject(json)) throw badRequestData(`must be ${what}: a JSON object`, 'body')
  return json
}

/** A body without the @context that it brings. */
export function withoutContext<T>(body: T): T | JsonObject {
  if (!isObject(body) || !Object.hasOwn(body, '@context')) return body
  const { '@context': _, ...rest } = body
  return rest
}

function readId(body: JsonObject, options: ParseOptions): string | undefined {
  const id = keyword(body, 'id')
  if (id === undefined) return options.id
  const uri = checkUri(id, 'id')
  if (options.id !== undefined && uri !== options.id) throw badRequestData(`is not ${options.id}`, 'id')
  return uri
}

function readAttributes(body: JsonObject, members: Record<string, Json>, reading: Reading): JsonObject {
  const gathering: Gathering = { members }
  let count = 0
  for (const key of Object.keys(body)) {
    if (key === '@context') continue
    const name = reading.context.expand(key)
    const value = body[key]!
    if (name === 'id' || name === 'type' || (systemMembers.has(name) && !isObject(value))) continue
    if (name === 'scope') {
      members['scope'] = value === ngsiLdNull && reading.nulls ? value : (checkScope(value) as Json)
    } else if (name === 'expiresAt') {
      members[name] = value === ngsiLdNull && reading.nulls ? value : checkDateTime(value, key)
    } else {
      if (++count > limits.attributesPerEntityMax.value) {
        throw badRequestData(`more than ${limits.attributesPerEntityMax.value} attributes`, key)
      }
      gather(gathering, checkAttributeName(name, key), readAttribute(value, key, reading, 2))
    }
  }
  const fragment = gathered(gathering)
  // What is merged may lack its type; its kind is checked when it is merged.
  if (!reading.merging) checkGeoNames(fragment as Fragment)
  return fragment
}

function checkGeoNames(fragment: Fragment): void {
  for (const name of attributeNames(fragment))
    for (const instance of instancesOf(fragment, name)) checkGeoName(name, instance)
}
