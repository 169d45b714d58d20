/**
 * Estimates a query before anything is read: its depth, and the maximum numbers of objects and values. Lists
 * count with their limits, nested lists with a fixed estimate, schema lists with their size. A field counts
 * once per alias and object. Each fragment is evaluated once, so rejecting a small document that expands to
 * millions of fields is cheap. Pure functions.
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
  /** Maximum number of objects in the response. */
  readonly cost: number
  /** Maximum number of fields in the response, including schema fields. */
  readonly values: number
  /** Nesting depth of entities. */
  readonly depth: number
}

type Variables = Readonly<Record<string, unknown>>

interface Estimate {
  readonly schema: GraphQLSchema
  readonly model: Model
  readonly variables: Variables
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>
  readonly known: Map<string, Cost>
  /** Sizes of schema lists by field. */
  readonly sizes: Map<string, number>
}

const nothing: Cost = { cost: 0, values: 0, depth: 0 }

/**
 * The cost of a valid operation; zero if its variables are invalid, because then it is rejected and not run.
 */
export function costOf(
  schema: GraphQLSchema,
  model: Model,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  given: Variables,
): Cost {
  // Coerced as in the execution, with defaults.
  const { variableValues } = getVariableValues(schema, operation.variableDefinitions ?? [], given)
  if (variableValues === undefined) return nothing
  const variables = variableValues.coerced
  const fragments = new Map(
    document.definitions.flatMap((one) =>
      one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one] as const] : [],
    ),
  )
  const estimate: Estimate = { schema, model, variables, fragments, known: new Map(), sizes: new Map() }
  const root = schema.getRootType(operation.operation)
  return ofSelections(estimate, operation.selectionSet, root ?? undefined)
}

/** The error if a cost exceeds the limits; undefined otherwise. */
export function costRefusal({ cost, values, depth }: Cost): GraphQLError | undefined {
  const extensions = { code: 'TOO_COMPLEX', cost, values, depth }
  if (depth > limits.searchDepthMax.value) {
    const message = `The query nests ${depth} entities; at most ${limits.searchDepthMax.value}`
    return new GraphQLError(message, { extensions })
  }
  if (cost > limits.searchCostMax.value) {
    const message = `The query may return ${cost} objects; at most ${limits.searchCostMax.value}: lower limit, or request less at once`
    return new GraphQLError(message, { extensions })
  }
  if (values <= limits.searchValuesMax.value) return undefined
  const message = `The query may return ${values} values; at most ${limits.searchValuesMax.value}: lower limit, or select fewer fields`
  return new GraphQLError(message, { extensions })
}

function ofSelections(
  estimate: Estimate,
  selections: SelectionSetNode,
  parent: GraphQLObjectType | undefined,
): Cost {
  let cost = 0
  let values = 0
  let depth = 0
  for (const one of selections.selections) {
    const found = ofSelection(estimate, one, parent)
    cost += found.cost
    values += found.values
    depth = Math.max(depth, found.depth)
  }
  return { cost, values, depth }
}

function ofSelection(
  estimate: Estimate,
  one: SelectionSetNode['selections'][number],
  parent: GraphQLObjectType | undefined,
): Cost {
  if (one.kind === Kind.FIELD) return ofField(estimate, one, parent)
  if (one.kind === Kind.INLINE_FRAGMENT) return ofSelections(estimate, one.selectionSet, parent)
  const { value: name } = one.name
  const known = estimate.known.get(name)
  if (known !== undefined) return known
  const fragment = estimate.fragments.get(name)
  const type = estimate.schema.getType(fragment?.typeCondition.name.value ?? '')
  const found =
    fragment === undefined || !isObjectType(type)
      ? nothing
      : ofSelections(estimate, fragment.selectionSet, type)
  estimate.known.set(name, found)
  return found
}

function ofField(estimate: Estimate, field: FieldNode, parent: GraphQLObjectType | undefined): Cost {
  const { value: name } = field.name
  const leaf: Cost = { cost: 0, values: 1, depth: 0 }
  if (parent === undefined || field.selectionSet === undefined) return leaf
  if (parent.name.startsWith('__') || name.startsWith('__')) return ofSchemaField(estimate, field, parent)
  const type = parent.getFields()[name]?.type
  const named = type === undefined ? undefined : getNamedType(type)
  if (!isObjectType(named)) return leaf
  const inner = ofSelections(estimate, field.selectionSet, named)
  const isResource = estimate.model.kindsOf(named.name).length > 0
  // The contents of an edge were counted with its connection.
  const isRoot = parent === estimate.schema.getQueryType()
  const isMany = isListType(getNullableType(type!)) || isRoot
  const times = isRoot ? listSize(estimate, field) : isMany && isResource && !isEdge(parent) ? listCost : 1
  const own = isResource ? 1 : 0
  return { cost: times * (own + inner.cost), values: 1 + times * inner.values, depth: own + inner.depth }
}

/** The cost of an introspection field. */
function ofSchemaField(estimate: Estimate, field: FieldNode, parent: GraphQLObjectType): Cost {
  const { schema, sizes } = estimate
  const { value: name } = field.name
  const entry = name === '__schema' ? '__Schema' : name === '__type' ? '__Type' : undefined
  const type = entry === undefined ? parent.getFields()[name]?.type : schema.getType(entry)
  const named = type === undefined ? undefined : getNamedType(type)
  if (!isObjectType(named)) return { cost: 0, values: 1, depth: 0 }
  const inner = ofSelections(estimate, field.selectionSet!, named)
  const times = sizes.get(name) ?? sizeInSchema(schema, name)
  sizes.set(name, times)
  return { cost: 0, values: 1 + times * inner.values, depth: 0 }
}

/** Estimated size of a schema list: all types, or the average; the largest for a type requested by name. */
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

/** The number of entities that a root field requests. */
function listSize({ variables }: Estimate, field: FieldNode): number {
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
