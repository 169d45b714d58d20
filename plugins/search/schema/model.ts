/**
 * The model in a merged schema: the classes of each type, the attributes of each field, and the type
 * hierarchy. It determines everything that the search does; no type has code of its own. Pure functions.
 */
import {
  type DocumentNode,
  type FieldDefinitionNode,
  type InputValueDefinitionNode,
  Kind,
  type NamedTypeNode,
  type ObjectTypeDefinitionNode,
  type TypeNode,
} from 'graphql'
import { directive, rulesOf, textOf, textsOf } from './directives.ts'

/** A field of a type and the location of its value. */
export interface FieldModel {
  readonly name: string
  /**
   * `value` is a scalar, `link` another entity, `part` an object within an attribute, `place` an entity's
   * geometry, `own` a member of the entity itself (id, type).
   */
  readonly kind: 'own' | 'value' | 'link' | 'part' | 'place'
  /** Name of the scalar or type. */
  readonly of: string
  readonly isList: boolean
  /** IRIs of the attribute; the first one that an entity has counts. */
  readonly uris: readonly string[]
  /** IRI of the attribute by which the other entity links here. */
  readonly inverse: string | undefined
  /** Member of the attribute; its value if undefined. */
  readonly member: string | undefined
  /** The link to the entity that provides the default. */
  readonly from: string | undefined
  readonly rules: readonly { readonly when?: string; readonly find?: string }[]
}

export interface TypeModel {
  readonly name: string
  /**
   * Whether entities have this type directly; otherwise they have a broad type and this class as
   * alternativeType.
   */
  readonly isBroad: boolean
  /** IRIs of its class; empty for parts. */
  readonly classes: readonly string[]
  readonly parents: readonly string[]
  readonly fields: ReadonlyMap<string, FieldModel>
}

export interface Model {
  readonly types: ReadonlyMap<string, TypeModel>
  /** Attributes named by input fields themselves, by input and field. */
  readonly inputUris: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>
  /** The type and all its subtypes. */
  family(name: string): readonly TypeModel[]
  /** How to select entities of the type: by their types, or by a broad type with an alternativeType. */
  kindsOf(name: string): readonly Kindred[]
}

export interface Kindred {
  readonly types: readonly string[]
  /** If undefined, any alternativeType matches. */
  readonly alternatives?: readonly string[]
}

export function toModel(document: DocumentNode, broad: ReadonlySet<string>): Model {
  const objects = document.definitions.filter(
    (node): node is ObjectTypeDefinitionNode => node.kind === Kind.OBJECT_TYPE_DEFINITION,
  )
  const resources = new Set(
    objects.filter((node) => directive(node, 'resource') !== undefined).map((node) => node.name.value),
  )
  const names = new Set(objects.map((node) => node.name.value))
  const types = new Map(
    objects.map((node) => [node.name.value, toType(node, { broad, resources, names })] as const),
  )
  const family = (name: string): readonly TypeModel[] => {
    const below = [...types.values()].filter(({ parents }) => parents.includes(name))
    return [types.get(name)!, ...new Set(below.flatMap((type) => family(type.name)))]
  }
  const kinds = new Map([...resources].map((name) => [name, kindsOf(name, types, family)] as const))
  return Object.freeze({
    types,
    inputUris: inputUrisOf(document),
    family,
    kindsOf: (name: string) => kinds.get(name) ?? [],
  })
}

interface Known {
  readonly broad: ReadonlySet<string>
  readonly resources: ReadonlySet<string>
  readonly names: ReadonlySet<string>
}

function toType(node: ObjectTypeDefinitionNode, known: Known): TypeModel {
  const own = textOf(node, 'resource', 'class')
  const isResource = known.resources.has(node.name.value)
  return {
    name: node.name.value,
    isBroad: known.broad.has(node.name.value),
    classes: own === undefined ? [] : [own, ...textsOf(node, 'resource', 'also')],
    parents: textsOf(node, 'resource', 'subClassOf'),
    fields: new Map(
      (node.fields ?? []).map((field) => [field.name.value, toField(field, isResource, known)]),
    ),
  }
}

function toField(field: FieldDefinitionNode, isResource: boolean, { resources, names }: Known): FieldModel {
  const { value: name } = field.name
  const of = namedOf(field.type).name.value
  const inverse = textOf(field, 'inverse', 'uri')
  const rules = rulesOf(field)
  const uri = textOf(field, 'attribute', 'uri')
  const isDeclared = uri !== undefined || inverse !== undefined || rules.length > 0
  const isOwn = !isDeclared && (!isResource || name === 'id' || name === 'type')
  // By default, a field is the attribute of the same name in the default vocabulary.
  const first =
    uri ?? (isDeclared || isOwn ? undefined : `https://uri.etsi.org/ngsi-ld/default-context/${name}`)
  const uris = first === undefined ? [] : [first, ...textsOf(field, 'attribute', 'also')]
  const kind = (): FieldModel['kind'] => {
    if (isOwn) return 'own'
    if (of === 'GeoLocation') return 'place'
    if (resources.has(of)) return 'link'
    return names.has(of) ? 'part' : 'value'
  }
  const member = textOf(field, 'attribute', 'member')
  const from = textOf(field, 'from', 'field')
  return { name, kind: kind(), of, isList: isList(field.type), uris, inverse, member, from, rules }
}

const isList = (type: TypeNode): boolean =>
  type.kind === Kind.LIST_TYPE || (type.kind === Kind.NON_NULL_TYPE && isList(type.type))

function namedOf(type: TypeNode): NamedTypeNode {
  return type.kind === Kind.NAMED_TYPE ? type : namedOf(type.type)
}

/**
 * Entities have their broad type and the specific class as alternativeType; some have the specific type
 * directly. So a broad type is selected by the classes of its family only, other types in both ways.
 */
function kindsOf(
  name: string,
  types: ReadonlyMap<string, TypeModel>,
  family: (name: string) => readonly TypeModel[],
): readonly Kindred[] {
  const classes = [...new Set(family(name).flatMap((type) => type.classes))]
  const broadClasses = new Set(
    [...types.values()].filter(({ isBroad }) => isBroad).flatMap((type) => type.classes),
  )
  const above = broadAbove(name, types)
  const isOwnBroad = classes.some((one) => broadClasses.has(one))
  if (isOwnBroad || above.length === 0) return [{ types: classes }]
  return [{ types: above, alternatives: classes }, { types: classes }]
}

/** Classes of the nearest broad supertypes. */
function broadAbove(name: string, types: ReadonlyMap<string, TypeModel>): readonly string[] {
  const found = (types.get(name)?.parents ?? []).flatMap((parent) => {
    const above = types.get(parent)
    if (above === undefined) return []
    return above.isBroad ? above.classes : broadAbove(parent, types)
  })
  return [...new Set(found)]
}

function inputUrisOf(document: DocumentNode): Model['inputUris'] {
  const found = new Map<string, Map<string, readonly string[]>>()
  for (const node of document.definitions) {
    if (node.kind !== Kind.INPUT_OBJECT_TYPE_DEFINITION) continue
    const uris = (node.fields ?? []).flatMap((field: InputValueDefinitionNode) => {
      const uri = textOf(field, 'attribute', 'uri')
      return uri === undefined
        ? []
        : [[field.name.value, [uri, ...textsOf(field, 'attribute', 'also')]] as const]
    })
    if (uris.length > 0) found.set(node.name.value, new Map(uris))
  }
  return found
}
