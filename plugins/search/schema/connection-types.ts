/**
 * Adds a connection for each query that lists entities, with cursors and counts. Its arguments are the same
 * except offset and limit. Pure functions on documents.
 */
import {
  type DocumentNode,
  type FieldDefinitionNode,
  Kind,
  type ObjectTypeDefinitionNode,
  parse,
  print,
} from 'graphql'
import { directive } from './directives.ts'

/** Adds `streamsConnection` beside `streams`, and so on; an existing query stays unchanged. */
export function withConnections(document: DocumentNode): DocumentNode {
  const objects = document.definitions.filter(
    (node): node is ObjectTypeDefinitionNode => node.kind === Kind.OBJECT_TYPE_DEFINITION,
  )
  const resources = new Set(
    objects.filter((node) => directive(node, 'resource') !== undefined).map((node) => node.name.value),
  )
  const query = objects.find((node) => node.name.value === 'Query')
  const present = new Set((query?.fields ?? []).map(({ name }) => name.value))
  const lists = (query?.fields ?? []).flatMap((field) => {
    const target = listTarget(field)
    const isNew = !present.has(`${field.name.value}Connection`)
    return isNew && target !== undefined && resources.has(target) ? [{ field, target }] : []
  })
  if (query === undefined || lists.length === 0) return document
  const types = [...new Set(lists.map(({ target }) => target))].map(typesOf)
  const [added, ...rest] = parse(
    [`type Added { ${lists.map(fieldOf).join('\n')} }`, pageInfo, ...types].join('\n'),
  ).definitions
  const fields = [...query.fields!, ...(added as ObjectTypeDefinitionNode).fields!]
  const definitions = document.definitions.map((one) => (one === query ? { ...query, fields } : one))
  return { kind: Kind.DOCUMENT, definitions: [...definitions, ...rest] }
}

/** The name of the type that a field lists; undefined for other fields. */
function listTarget({ type }: FieldDefinitionNode): string | undefined {
  if (type.kind !== Kind.LIST_TYPE) return undefined
  const inner = type.type.kind === Kind.NON_NULL_TYPE ? type.type.type : type.type
  return inner.kind === Kind.NAMED_TYPE ? inner.name.value : undefined
}

const pageInfo = `
"Cursors are positions among the matches: later entities follow at the end, and deletions move the rest up."
type PageInfo {
  hasNextPage: Boolean!
  hasPreviousPage: Boolean!
  startCursor: String
  endCursor: String
}`

const typesOf = (name: string): string => `
type ${name}Edge { cursor: String! node: ${name}! }
type ${name}Connection {
  edges: [${name}Edge!]!
  nodes: [${name}!]!
  pageInfo: PageInfo!
  "Number of all matches; requires a count."
  totalCount: Int!
}`

function fieldOf({ field, target }: { field: FieldDefinitionNode; target: string }): string {
  const kept = (field.arguments ?? []).filter(({ name }) => !['offset', 'limit'].includes(name.value))
  const arguments_ = [...kept.map((one) => print({ ...one, directives: [] })), 'first: Int', 'after: String']
  return `${field.name.value}Connection(${arguments_.join(', ')}): ${target}Connection!`
}
