/**
 * Merges schema documents: the queries of all files are combined, types inherit fields of their parents, and
 * each list query gets a connection. A mistake is reported with file and line, and that file is ignored. If a
 * file declares a type or query of the platform again, the platform's fields take precedence and new fields
 * are added. Pure functions on texts.
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

/** A schema document and its file name. */
export interface SchemaText {
  readonly name: string
  readonly text: string
}

/** A mistake in a schema document and its place: `file:line:column`. */
export interface SchemaMistake {
  readonly file: string
  readonly place: string
  readonly message: string
}

export interface MergedSchema {
  readonly document: DocumentNode
  readonly mistakes: readonly SchemaMistake[]
  /** Names of the types in the first document, which entities have directly. */
  readonly broad: ReadonlySet<string>
}

/** Merges schemas. The first is the platform's own, without mistakes; others with mistakes are ignored. */
export function mergeSchemas(own: SchemaText, others: readonly SchemaText[]): MergedSchema {
  const mistakes: SchemaMistake[] = []
  const broad = new Set(parsed(own).definitions.flatMap((one) => (isObject(one) ? [one.name.value] : [])))
  let files = [...others]
  for (;;) {
    const found: GraphQLError[] = []
    const document = merged([own, ...files], found)
    if (found.length === 0) return { document, mistakes, broad }
    const reported = found.map(mistakeOf)
    mistakes.push(...reported)
    const faulty = new Set(reported.map(({ file }) => file))
    const kept = files.filter(({ name }) => !faulty.has(name))
    // A mistake without a file excludes all files, so that each pass has fewer.
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
  const collected: Definitions = { named: new Map(), directives: new Map(), own: new Set(), found }
  for (const text of texts) {
    try {
      for (const definition of parsed(text).definitions) addDefinition(collected, definition)
      if (text === texts[0]) for (const name of membersOf(collected)) collected.own.add(name)
    } catch (error) {
      found.push(error as GraphQLError)
    }
  }
  inheritAll(collected)
  checkReferences(collected)
  const definitions = [...collected.directives.values(), ...collected.named.values()]
  return withConnections({ kind: Kind.DOCUMENT, definitions })
}

/** The original schemas write types without fields with empty braces, which GraphQL does not allow. */
function parsed({ name, text }: SchemaText): DocumentNode {
  const withoutEmpty = text.replace(/\{(?:[\s,]|#[^\n]*\n)*\}/g, (braces) => braces.replace(/[^\n]/g, ' '))
  return parse(new Source(withoutEmpty, name))
}

interface Definitions {
  readonly named: Map<string, NamedDefinition>
  readonly directives: Map<string, DefinitionNode>
  /** Types of the platform's schema and their fields, including inherited ones, as `Type.field`. */
  readonly own: Set<string>
  readonly found: GraphQLError[]
}

function membersOf(collected: Definitions): string[] {
  const done = new Map<string, readonly FieldDefinitionNode[]>()
  return [...collected.named.values()].flatMap((node) => {
    const fields = isObject(node) ? withIdentity(fieldsOf(collected, node, done, [])) : []
    return [node.name.value, ...fields.map((field) => `${node.name.value}.${field.name.value}`)]
  })
}

type NamedDefinition = DefinitionNode & { readonly name: { readonly value: string } }

const isObject = (node: DefinitionNode): node is ObjectTypeDefinitionNode =>
  node.kind === Kind.OBJECT_TYPE_DEFINITION
const isInput = (node: DefinitionNode): node is InputObjectTypeDefinitionNode =>
  node.kind === Kind.INPUT_OBJECT_TYPE_DEFINITION

const roots = new Set(['Query', 'Subscription'])
const report = (collected: Definitions, message: string, nodes: ASTNode | readonly ASTNode[]): void => {
  collected.found.push(new GraphQLError(message, { nodes }))
}

/**
 * Extensions count as definitions. The original schemas repeat scalars, directives, inputs and the root in
 * each file.
 */
const extended: Partial<Record<Kind, Kind>> = {
  [Kind.OBJECT_TYPE_EXTENSION]: Kind.OBJECT_TYPE_DEFINITION,
  [Kind.INPUT_OBJECT_TYPE_EXTENSION]: Kind.INPUT_OBJECT_TYPE_DEFINITION,
}

function addDefinition(collected: Definitions, given: DefinitionNode): void {
  if (given.kind === Kind.SCHEMA_DEFINITION || given.kind === Kind.SCHEMA_EXTENSION) return
  if (given.kind === Kind.DIRECTIVE_DEFINITION) {
    if (!collected.directives.has(given.name.value)) collected.directives.set(given.name.value, given)
    return
  }
  const isExtension = extended[given.kind] !== undefined
  const node = { ...given, kind: extended[given.kind] ?? given.kind } as NamedDefinition
  const name = node.name?.value
  if (name === undefined) {
    report(collected, 'A schema document declares types, inputs, scalars and directives only', given)
    return
  }
  const known = collected.named.get(name)
  if (node.kind === Kind.SCALAR_TYPE_DEFINITION && known !== undefined) return
  if (known === undefined || known.kind === Kind.SCALAR_TYPE_DEFINITION) {
    collected.named.set(name, node)
    return
  }
  // Schema files of the original search enabler repeat types and queries that are built in here.
  const isOpen = roots.has(name) || isExtension || collected.own.has(name)
  const mayJoin = (isObject(node) && isObject(known) && isOpen) || isInput(node)
  if (!mayJoin || node.kind !== known.kind) {
    report(collected, `${name} is declared twice; write "extend type ${name}" to add to it`, given)
    return
  }
  collected.named.set(name, joined(collected, known, node))
}

type FieldsOwner = ObjectTypeDefinitionNode | InputObjectTypeDefinitionNode

function joined(collected: Definitions, known: FieldsOwner, added: FieldsOwner): NamedDefinition {
  const fields = new Map((known.fields ?? []).map((field) => [field.name.value, field]))
  for (const field of added.fields ?? []) {
    const { value: name } = field.name
    if (collected.own.has(`${added.name.value}.${name}`)) continue
    if (!fields.has(name)) fields.set(name, field)
    else if (isObject(added)) report(collected, `${added.name.value} has a field ${name} already`, field)
  }
  const kept = known.directives ?? []
  const isOwn = ({ name }: { readonly name: { readonly value: string } }): boolean =>
    collected.own.has(known.name.value) && kept.some((one) => one.name.value === name.value)
  const directives = [...kept, ...(added.directives ?? []).filter((one) => !isOwn(one))]
  return { ...known, directives, fields: [...fields.values()] } as NamedDefinition
}

// ---- Parents

function inheritAll(collected: Definitions): void {
  const done = new Map<string, readonly FieldDefinitionNode[]>()
  for (const node of [...collected.named.values()]) {
    if (!isObject(node) || roots.has(node.name.value)) continue
    const fields = fieldsOf(collected, node, done, [])
    const isResource = directive(node, 'resource') !== undefined
    if (fields.length === 0 && !isResource) report(collected, `${node.name.value} has no fields`, node)
    const own = isResource ? withIdentity(fields) : fields
    collected.named.set(node.name.value, { ...node, fields: own })
  }
}

/** Fields of a type, then those of its parents. */
function fieldsOf(
  collected: Definitions,
  node: ObjectTypeDefinitionNode,
  done: Map<string, readonly FieldDefinitionNode[]>,
  below: readonly string[],
): readonly FieldDefinitionNode[] {
  const { value: name } = node.name
  const known = done.get(name)
  if (known !== undefined) return known
  if (below.includes(name)) {
    report(collected, `${name} is a sub-class of itself: ${[...below, name].join(' < ')}`, node)
    return []
  }
  const fields = new Map((node.fields ?? []).map((field) => [field.name.value, field]))
  for (const parent of textsOf(node, 'resource', 'subClassOf')) {
    const above = collected.named.get(parent)
    if (above === undefined || !isObject(above)) {
      report(collected, `${name} is declared a sub-class of ${parent}, which is not a type`, node)
      continue
    }
    for (const field of fieldsOf(collected, above, done, [...below, name])) {
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

function checkReferences(collected: Definitions): void {
  const check = (type: TypeNode, isInputPlace: boolean): void => {
    const named = namedOf(type)
    const { value: name } = named.name
    if (builtIn.has(name)) return
    const target = collected.named.get(name)
    if (target === undefined) {
      report(collected, `There is no type ${name}`, named)
      return
    }
    if (isInputPlace && isObject(target)) {
      report(collected, `${name} is an output type; arguments and inputs require input types`, named)
    }
    if (!isInputPlace && isInput(target))
      report(collected, `${name} is an input; fields of types require output types`, named)
  }
  for (const node of collected.named.values()) {
    if (isInput(node)) for (const field of node.fields ?? []) check(field.type, true)
    if (!isObject(node)) continue
    for (const field of node.fields ?? []) {
      check(field.type, false)
      for (const argument of field.arguments ?? []) check(argument.type, true)
    }
  }
  checkDirectives(collected)
}

/** Checks names and arguments of directives; the library's check reports no position. */
function checkDirectives(collected: Definitions): void {
  const known: Readonly<Record<string, readonly string[]>> = {
    resource: ['class', 'subClassOf', 'also'],
    attribute: ['uri', 'also', 'member'],
    inverse: ['uri'],
    context: ['rules'],
    exclude: [],
    from: ['field'],
    deprecated: ['reason'],
  }
  const each = [...collected.named.values()].flatMap((node) =>
    isObject(node) || isInput(node) ? [node, ...(node.fields ?? [])] : [],
  )
  for (const used of each.flatMap((node) => node.directives ?? [])) {
    const { value: name } = used.name
    const names = known[name]
    if (names === undefined) report(collected, `There is no directive @${name}`, used)
    for (const { name: argument } of names === undefined ? [] : (used.arguments ?? [])) {
      if (!names!.includes(argument.value)) {
        report(collected, `@${name} has no argument ${argument.value}`, used)
      }
    }
    if ((name === 'attribute' || name === 'inverse') && (used.arguments ?? []).length === 0) {
      report(collected, `@${name} requires uri`, used)
    }
  }
}

function namedOf(type: TypeNode): NamedTypeNode {
  return type.kind === Kind.NAMED_TYPE ? type : namedOf(type.type)
}
