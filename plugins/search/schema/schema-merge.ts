/**
 * Many schema documents to one: queries of all files are put together, a type gets the fields of its parents, and each query
 * of a list gets a connection beside it. A mistake is reported with file and line, and nothing of that file is used. Where a file
 * declares a type or a query of the platform's own schema again, the platform's fields stay and unknown fields are added.
 * Pure: texts in, a document out.
 */
import {
  type ASTNode,
  type DefinitionNode,
  type DocumentNode,
  type FieldDefinitionNode,
  GraphQLError,
  type InputObjectTypeDefinitionNode,
  Kind,
  type NamedTypeNode,
  type ObjectTypeDefinitionNode,
  parse,
  Source,
  specifiedScalarTypes,
  type TypeNode,
} from 'graphql'
import { withConnections } from './connection-types.ts'
import { directive, textsOf } from './directives.ts'

/** A schema document and where it is from. */
export interface SchemaText {
  readonly name: string
  readonly text: string
}

/** A mistake in a schema document, and where it is: `file:line:column`. */
export interface SchemaMistake {
  readonly file: string
  readonly place: string
  readonly message: string
}

export interface MergedSchema {
  readonly document: DocumentNode
  readonly mistakes: readonly SchemaMistake[]
  /** Names of the types of the first document: what entities are typed as. */
  readonly broad: ReadonlySet<string>
}

/** Puts schemas together. The first is the platform's own and has no mistakes; of the others those with mistakes are left out. */
export function mergeSchemas(own: SchemaText, others: readonly SchemaText[]): MergedSchema {
  const mistakes: SchemaMistake[] = []
  const broad = new Set(parsed(own).definitions.flatMap((one) => (isObject(one) ? [one.name.value] : [])))
  let files = [...others]
  for (;;) {
    const found: GraphQLError[] = []
    const document = merged([own, ...files], found)
    if (found.length === 0) return { document, mistakes, broad }
    const told = found.map(mistakeOf)
    mistakes.push(...told)
    const faulty = new Set(told.map(({ file }) => file))
    const kept = files.filter(({ name }) => !faulty.has(name))
    // A mistake that no file answers for is laid on all of them, so that each turn leaves fewer.
    files = kept.length === files.length ? [] : kept
  }
}

function mistakeOf(error: GraphQLError): SchemaMistake {
  const file = error.source?.name ?? ''
  const [at] = error.locations ?? []
  const place = at === undefined ? file : `${file}:${at.line}:${at.column}`
  return { file, place, message: error.message }
}

function merged(texts: readonly SchemaText[], found: GraphQLError[]): DocumentNode {
  const shelf: Shelf = { named: new Map(), directives: new Map(), own: new Set(), found }
  for (const text of texts) {
    try {
      for (const definition of parsed(text).definitions) shelve(shelf, definition)
      if (text === texts[0]) for (const name of membersOf(shelf)) shelf.own.add(name)
    } catch (error) {
      found.push(error as GraphQLError)
    }
  }
  inheritAll(shelf)
  checkReferences(shelf)
  const definitions = [...shelf.directives.values(), ...shelf.named.values()]
  return withConnections({ kind: Kind.DOCUMENT, definitions })
}

/** The originals write types without fields with empty braces, which the language does not have. */
function parsed({ name, text }: SchemaText): DocumentNode {
  const withoutEmpty = text.replace(/\{(?:[\s,]|#[^\n]*\n)*\}/g, (braces) => braces.replace(/[^\n]/g, ' '))
  return parse(new Source(withoutEmpty, name))
}

interface Shelf {
  readonly named: Map<string, NamedDefinition>
  readonly directives: Map<string, DefinitionNode>
  /** Types of the platform's own schema, and their fields, inherited ones too, as `Type.field`. */
  readonly own: Set<string>
  readonly found: GraphQLError[]
}

function membersOf(shelf: Shelf): string[] {
  const done = new Map<string, readonly FieldDefinitionNode[]>()
  return [...shelf.named.values()].flatMap((node) => {
    const fields = isObject(node) ? withIdentity(fieldsOf(shelf, node, done, [])) : []
    return [node.name.value, ...fields.map((field) => `${node.name.value}.${field.name.value}`)]
  })
}

type NamedDefinition = DefinitionNode & { readonly name: { readonly value: string } }

const isObject = (node: DefinitionNode): node is ObjectTypeDefinitionNode =>
  node.kind === Kind.OBJECT_TYPE_DEFINITION
const isInput = (node: DefinitionNode): node is InputObjectTypeDefinitionNode =>
  node.kind === Kind.INPUT_OBJECT_TYPE_DEFINITION

const roots = new Set(['Query', 'Subscription'])
const complain = (shelf: Shelf, message: string, nodes: ASTNode | readonly ASTNode[]): void => {
  shelf.found.push(new GraphQLError(message, { nodes }))
}

/** Extensions count as further definitions; the originals repeat scalars, directives, inputs and the root in each file. */
const extended: Partial<Record<Kind, Kind>> = {
  [Kind.OBJECT_TYPE_EXTENSION]: Kind.OBJECT_TYPE_DEFINITION,
  [Kind.INPUT_OBJECT_TYPE_EXTENSION]: Kind.INPUT_OBJECT_TYPE_DEFINITION,
}

function shelve(shelf: Shelf, given: DefinitionNode): void {
  if (given.kind === Kind.SCHEMA_DEFINITION || given.kind === Kind.SCHEMA_EXTENSION) return
  if (given.kind === Kind.DIRECTIVE_DEFINITION) {
    if (!shelf.directives.has(given.name.value)) shelf.directives.set(given.name.value, given)
    return
  }
  const isExtension = extended[given.kind] !== undefined
  const node = { ...given, kind: extended[given.kind] ?? given.kind } as NamedDefinition
  const name = node.name?.value
  if (name === undefined) {
    complain(shelf, 'A schema document declares types, inputs, scalars and directives only', given)
    return
  }
  const known = shelf.named.get(name)
  if (node.kind === Kind.SCALAR_TYPE_DEFINITION && known !== undefined) return
  if (known === undefined || known.kind === Kind.SCALAR_TYPE_DEFINITION) {
    shelf.named.set(name, node)
    return
  }
  // The schema files of the original search enabler declare types and queries again that are the platform's own here.
  const isOpen = roots.has(name) || isExtension || shelf.own.has(name)
  const mayJoin = (isObject(node) && isObject(known) && isOpen) || isInput(node)
  if (!mayJoin || node.kind !== known.kind) {
    complain(shelf, `${name} is declared twice; write "extend type ${name}" to add to it`, given)
    return
  }
  shelf.named.set(name, joined(shelf, known, node))
}

type FieldsOwner = ObjectTypeDefinitionNode | InputObjectTypeDefinitionNode

function joined(shelf: Shelf, known: FieldsOwner, added: FieldsOwner): NamedDefinition {
  const fields = new Map((known.fields ?? []).map((field) => [field.name.value, field]))
  for (const field of added.fields ?? []) {
    const { value: name } = field.name
    if (shelf.own.has(`${added.name.value}.${name}`)) continue
    if (!fields.has(name)) fields.set(name, field)
    else if (isObject(added)) complain(shelf, `${added.name.value} has a field ${name} already`, field)
  }
  const kept = known.directives ?? []
  const isOwn = ({ name }: { readonly name: { readonly value: string } }): boolean =>
    shelf.own.has(known.name.value) && kept.some((one) => one.name.value === name.value)
  const directives = [...kept, ...(added.directives ?? []).filter((one) => !isOwn(one))]
  return { ...known, directives, fields: [...fields.values()] } as NamedDefinition
}

// ---- Parents

function inheritAll(shelf: Shelf): void {
  const done = new Map<string, readonly FieldDefinitionNode[]>()
  for (const node of [...shelf.named.values()]) {
    if (!isObject(node) || roots.has(node.name.value)) continue
    const fields = fieldsOf(shelf, node, done, [])
    const isResource = directive(node, 'resource') !== undefined
    if (fields.length === 0 && !isResource) complain(shelf, `${node.name.value} has no fields`, node)
    const own = isResource ? withIdentity(fields) : fields
    shelf.named.set(node.name.value, { ...node, fields: own })
  }
}

/** Fields of a type with those of its parents, its own first. */
function fieldsOf(
  shelf: Shelf,
  node: ObjectTypeDefinitionNode,
  done: Map<string, readonly FieldDefinitionNode[]>,
  below: readonly string[],
): readonly FieldDefinitionNode[] {
  const { value: name } = node.name
  const known = done.get(name)
  if (known !== undefined) return known
  if (below.includes(name)) {
    complain(shelf, `${name} is a sub-class of itself: ${[...below, name].join(' < ')}`, node)
    return []
  }
  const fields = new Map((node.fields ?? []).map((field) => [field.name.value, field]))
  for (const parent of textsOf(node, 'resource', 'subClassOf')) {
    const above = shelf.named.get(parent)
    if (above === undefined || !isObject(above)) {
      complain(shelf, `${name} is declared a sub-class of ${parent}, which is no type`, node)
      continue
    }
    for (const field of fieldsOf(shelf, above, done, [...below, name])) {
      if (!fields.has(field.name.value)) fields.set(field.name.value, field)
    }
  }
  done.set(name, [...fields.values()])
  return done.get(name)!
}

const identity = (parse('type T { id: String! type: String! }').definitions[0] as ObjectTypeDefinitionNode)
  .fields!

function withIdentity(fields: readonly FieldDefinitionNode[]): readonly FieldDefinitionNode[] {
  const names = new Set(fields.map((field) => field.name.value))
  return [...identity.filter((field) => !names.has(field.name.value)), ...fields]
}

// ---- References

const builtIn = new Set(specifiedScalarTypes.map(({ name }) => name))

function checkReferences(shelf: Shelf): void {
  const check = (type: TypeNode, isInputPlace: boolean): void => {
    const named = namedOf(type)
    const { value: name } = named.name
    if (builtIn.has(name)) return
    const target = shelf.named.get(name)
    if (target === undefined) {
      complain(shelf, `There is no type ${name}`, named)
      return
    }
    if (isInputPlace && isObject(target)) {
      complain(shelf, `${name} is a type of answers; arguments and inputs take inputs`, named)
    }
    if (!isInputPlace && isInput(target)) complain(shelf, `${name} is an input; answers take types`, named)
  }
  for (const node of shelf.named.values()) {
    if (isInput(node)) for (const field of node.fields ?? []) check(field.type, true)
    if (!isObject(node)) continue
    for (const field of node.fields ?? []) {
      check(field.type, false)
      for (const argument of field.arguments ?? []) check(argument.type, true)
    }
  }
  checkDirectives(shelf)
}

/** Names and arguments of directives; the library checks them only together with the rest and without a place. */
function checkDirectives(shelf: Shelf): void {
  const known: Readonly<Record<string, readonly string[]>> = {
    resource: ['class', 'subClassOf', 'also'],
    attribute: ['uri', 'also', 'member'],
    inverse: ['uri'],
    context: ['rules'],
    exclude: [],
    from: ['field'],
    deprecated: ['reason'],
  }
  const each = [...shelf.named.values()].flatMap((node) =>
    isObject(node) || isInput(node) ? [node, ...(node.fields ?? [])] : [],
  )
  for (const used of each.flatMap((node) => node.directives ?? [])) {
    const { value: name } = used.name
    const names = known[name]
    if (names === undefined) complain(shelf, `There is no directive @${name}`, used)
    for (const { name: argument } of names === undefined ? [] : (used.arguments ?? [])) {
      if (!names!.includes(argument.value)) {
        complain(shelf, `@${name} has no argument ${argument.value}`, used)
      }
    }
    if ((name === 'attribute' || name === 'inverse') && (used.arguments ?? []).length === 0) {
      complain(shelf, `@${name} needs uri`, used)
    }
  }
}

function namedOf(type: TypeNode): NamedTypeNode {
  return type.kind === Kind.NAMED_TYPE ? type : namedOf(type.type)
}
