/**
 * How deep a query goes and how many objects it may ask for at most, reckoned before anything is read: lists at their
 * limits, lists within lists at a fair guess. Fragments are reckoned once each, so that a small document that unfolds to
 * millions costs nothing to refuse. Pure.
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
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'
import { limits } from '#base/limits.ts'
import type { Model } from './model.ts'

export interface Cost {
  /** Objects that may be answered. */
  readonly cost: number
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
}

/** What a valid operation costs. */
export function costOf(
  schema: GraphQLSchema,
  model: Model,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): Cost {
  const fragments = new Map(
    document.definitions.flatMap((one) =>
      one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one] as const] : [],
    ),
  )
  const reckoning: Reckoning = { schema, model, variables, fragments, known: new Map() }
  const root = schema.getRootType(operation.operation)
  return ofSelections(reckoning, operation.selectionSet, root ?? undefined)
}

/** Refuses what is beyond the ceilings; undefined when it is not. */
export function costRefusal({ cost, depth }: Cost): GraphQLError | undefined {
  const extensions = { code: 'TOO_COMPLEX', cost, depth }
  if (depth > limits.searchDepthMax.value) {
    const message = `The query goes ${depth} entities deep; at most ${limits.searchDepthMax.value}`
    return new GraphQLError(message, { extensions })
  }
  if (cost <= limits.searchCostMax.value) return undefined
  const message = `The query may ask for ${cost} objects; at most ${limits.searchCostMax.value}: lower limit, or ask for less at once`
  return new GraphQLError(message, { extensions })
}

function ofSelections(
  reckoning: Reckoning,
  selections: SelectionSetNode,
  parent: GraphQLObjectType | undefined,
): Cost {
  let [cost, depth] = [0, 0]
  for (const one of selections.selections) {
    const found = ofSelection(reckoning, one, parent)
    cost += found.cost
    depth = Math.max(depth, found.depth)
  }
  return { cost, depth }
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
      ? { cost: 0, depth: 0 }
      : ofSelections(reckoning, fragment.selectionSet, type)
  reckoning.known.set(name, found)
  return found
}

function ofField(reckoning: Reckoning, field: FieldNode, parent: GraphQLObjectType | undefined): Cost {
  const nothing = { cost: 0, depth: 0 }
  const { value: name } = field.name
  if (name.startsWith('__') || parent === undefined || field.selectionSet === undefined) return nothing
  const type = parent.getFields()[name]?.type
  const named = type === undefined ? undefined : getNamedType(type)
  if (!isObjectType(named)) return nothing
  const inner = ofSelections(reckoning, field.selectionSet, named)
  const isResource = reckoning.model.kindsOf(named.name).length > 0
  // What an edge holds was counted with its connection.
  const isRoot = parent === reckoning.schema.getQueryType()
  const isMany = isListType(getNullableType(type!)) || isRoot
  const times = isRoot ? listSize(reckoning, field) : isMany && isResource && !isEdge(parent) ? listCost : 1
  const own = isResource ? 1 : 0
  return { cost: times * (own + inner.cost), depth: own + inner.depth }
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
