/**
 * How deep a query goes, how many objects and how many values it may ask for at most, reckoned before anything is read:
 * lists at their limits, lists within lists at a fair guess, the schema by its own size. Every field is a value, under each
 * of its names, once for each object that has it. Fragments are reckoned once each, so that a small document that unfolds
 * to millions costs nothing to refuse. Pure.
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getVariableValues,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { Model } from './model.ts'

export interface Cost {
  /** Objects that may be answered. */
  readonly cost: number
  /** Fields that may be answered, those of the schema among them. */
  readonly values: number
  /** Entities within entities. */
  readonly depth: number
}

type Variables = Readonly<Record<string, unknown>>

interface Reckoning {
  readonly schema: GraphQLSchema
  readonly model: Model
  readonly variables: Variables
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>
  readonly known: Map<string, Cost>
  /** How many the lists of the schema hold, by their field. */
  readonly sizes: Map<string, number>
}

const nothing: Cost = { cost: 0, values: 0, depth: 0 }

/** What a valid operation costs; nothing where its variables are wrong, since then it is refused and not run. */
export function costOf(
  schema: GraphQLSchema,
  model: Model,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  given: Variables,
): Cost {
  // As the execution has them: with their defaults.
  const { variableValues } = getVariableValues(schema, operation.variableDefinitions ?? [], given)
  if (variableValues === undefined) return nothing
  const variables = variableValues.coerced
  const fragments = new Map(
    document.definitions.flatMap((one) =>
      one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one] as const] : [],
    ),
  )
  const reckoning: Reckoning = { schema, model, variables, fragments, known: new Map(), sizes: new Map() }
  const root = schema.getRootType(operation.operation)
  return ofSelections(reckoning, operation.selectionSet, root ?? undefined)
}

/** Refuses what is beyond the ceilings; undefined when it is not. */
export function costRefusal({ cost, values, depth }: Cost): GraphQLError | undefined {
  const extensions = { code: 'TOO_COMPLEX', cost, values, depth }
  if (depth > limits.searchDepthMax.value) {
    const message = `The query goes ${depth} entities deep; at most ${limits.searchDepthMax.value}`
    return new GraphQLError(message, { extensions })
  }
  if (cost > limits.searchCostMax.value) {
    const message = `The query may ask for ${cost} objects; at most ${limits.searchCostMax.value}: lower limit, or ask for less at once`
    return new GraphQLError(message, { extensions })
  }
  if (values <= limits.searchValuesMax.value) return undefined
  const message = `The query may ask for ${values} values; at most ${limits.searchValuesMax.value}: lower limit, or name fewer fields`
  return new GraphQLError(message, { extensions })
}

function ofSelections(
  reckoning: Reckoning,
  selections: SelectionSetNode,
  parent: GraphQLObjectType | undefined,
): Cost {
  let [cost, values, depth] = [0, 0, 0]
  for (const one of selections.selections) {
    const found = ofSelection(reckoning, one, parent)
    cost += found.cost
    values += found.values
    depth = Math.max(depth, found.depth)
  }
  return { cost, values, depth }
}

function ofSelection(
  reckoning: Reckoning,
  one: SelectionSetNode['selections'][number],
  parent: GraphQLObjectType | undefined,
): Cost {
  if (one.kind === Kind.FIELD) return ofField(reckoning, one, parent)
  if (one.kind === Kind.INLINE_FRAGMENT) return ofSelections(reckoning, one.selectionSet, parent)
  const { value: name } = one.name
  const known = reckoning.known.get(name)
  if (known !== undefined) return known
  const fragment = reckoning.fragments.get(name)
  const type = reckoning.schema.getType(fragment?.typeCondition.name.value ?? '')
  const found =
    fragment === undefined || !isObjectType(type)
      ? nothing
      : ofSelections(reckoning, fragment.selectionSet, type)
  reckoning.known.set(name, found)
  return found
}

function ofField(reckoning: Reckoning, field: FieldNode, parent: GraphQLObjectType | undefined): Cost {
  const { value: name } = field.name
  const leaf: Cost = { cost: 0, values: 1, depth: 0 }
  if (parent === undefined || field.selectionSet === undefined) return leaf
  if (parent.name.startsWith('__') || name.startsWith('__')) return ofSchemaField(reckoning, field, parent)
  const type = parent.getFields()[name]?.type
  const named = type === undefined ? undefined : getNamedType(type)
  if (!isObjectType(named)) return leaf
  const inner = ofSelections(reckoning, field.selectionSet, named)
  const isResource = reckoning.model.kindsOf(named.name).length > 0
  // What an edge holds was counted with its connection.
  const isRoot = parent === reckoning.schema.getQueryType()
  const isMany = isListType(getNullableType(type!)) || isRoot
  const times = isRoot ? listSize(reckoning, field) : isMany && isResource && !isEdge(parent) ? listCost : 1
  const own = isResource ? 1 : 0
  return { cost: times * (own + inner.cost), values: 1 + times * inner.values, depth: own + inner.depth }
}

/** Of what is asked about the schema. */
function ofSchemaField(reckoning: Reckoning, field: FieldNode, parent: GraphQLObjectType): Cost {
  const { schema, sizes } = reckoning
  const { value: name } = field.name
  const entry = name === '__schema' ? '__Schema' : name === '__type' ? '__Type' : undefined
  const type = entry === undefined ? parent.getFields()[name]?.type : schema.getType(entry)
  const named = type === undefined ? undefined : getNamedType(type)
  if (!isObjectType(named)) return { cost: 0, values: 1, depth: 0 }
  const inner = ofSelections(reckoning, field.selectionSet!, named)
  const times = sizes.get(name) ?? sizeInSchema(schema, name)
  sizes.set(name, times)
  return { cost: 0, values: 1 + times * inner.values, depth: 0 }
}

/** How many a list of the schema holds: all types, else as many as on average. A type asked for by name may be the largest. */
function sizeInSchema(schema: GraphQLSchema, name: string): number {
  const types = Object.values(schema.getTypeMap())
  if (name === 'types') return types.length
  const fields = types.flatMap((type) => (isObjectType(type) ? [Object.values(type.getFields())] : []))
  const all = fields.flat()
  if (name === 'fields') return Math.ceil(all.length / types.length)
  if (name === 'args') return Math.ceil(all.flatMap(({ args }) => args).length / all.length)
  if (name === '__type') return Math.max(...fields.map(({ length }) => length))
  return 1
}

const listCost = limits.searchListCost.value
const isEdge = ({ name }: GraphQLObjectType): boolean => /(?:Connection|Edge)$/.test(name)

/** How many a root field asks for. */
function listSize({ variables }: Reckoning, field: FieldNode): number {
  const given = (wanted: string): unknown => {
    const value = field.arguments?.find(({ name }) => name.value === wanted)?.value
    if (value?.kind === Kind.VARIABLE) return variables[value.name.value]
    return value?.kind === Kind.INT
      ? Number(value.value)
      : value?.kind === Kind.STRING
        ? value.value
        : undefined
  }
  if (typeof given('id') === 'string') return 1
  const size = given('limit') ?? given('first')
  return typeof size === 'number' && size > 0 ? size : limits.searchPageDefault.value
}
