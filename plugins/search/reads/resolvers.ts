/**
 * Resolves fields from entities as the model describes; no type or query has code of its own. All reads use
 * the operation's `Reads`, which batches and counts them.
 */
import {
  GraphQLError,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isObjectType,
} from 'graphql'
import { limits } from '#base/limits/limits.ts'
import {
  type EntityJson,
  instanceOf,
  instancesOf,
  memberOf,
  toScalar,
  typeOf,
} from '#plugins/search/schema/entity-values.ts'
import type { FieldModel, Model, TypeModel } from '#plugins/search/schema/model.ts'
import { type GivenArguments, type QueryCriteria, toCriteria } from '#plugins/search/schema/query-criteria.ts'
import type { Selection } from './criteria-selection.ts'
import type { Inference } from './infer.ts'
import { rankingOf } from './ranking-arguments.ts'
import { connection } from './relay-connection.ts'

/** State shared by the resolvers of one operation. For subscriptions it is renewed with each event. */
export interface RunningOperation {
  selection: Selection
  inference: Inference
}

type Resolve = GraphQLFieldResolver<unknown, RunningOperation>

/** Sets the resolver of each field in the schema. */
export function resolveBy(schema: GraphQLSchema, model: Model): void {
  for (const type of model.types.values()) {
    const built = schema.getType(type.name)
    if (!isObjectType(built)) continue
    for (const [name, field] of Object.entries(built.getFields())) {
      const resolve = resolverOf(type, name)
      if (resolve !== undefined) field.resolve = resolve as GraphQLField<unknown, unknown>['resolve'] & object
    }
  }
  for (const field of Object.values(schema.getQueryType()?.getFields() ?? {})) {
    field.resolve = rootOf(model, field) as GraphQLField<unknown, unknown>['resolve'] & object
  }
}

function resolverOf(type: TypeModel, name: string): Resolve | undefined {
  const field = type.fields.get(name)
  const isResource = type.classes.length > 0
  if (field === undefined) return undefined
  if (isResource && name === 'id') return (entity) => (entity as EntityJson).id
  if (isResource && name === 'type') return (entity) => typeOf(entity as EntityJson)
  if (field.kind === 'link')
    return async (entity, _given, { inference }) => {
      const members = await inference.members(type, entity as EntityJson, field)
      return field.isList ? members : (members[0] ?? null)
    }
  if (field.kind === 'place') {
    return (entity, _given, { inference }) => inference.placeOf(type, entity as EntityJson, field)
  }
  if (field.kind === 'part') {
    return (entity) => {
      const instances = instancesOf(entity as EntityJson, field.uris)
      return field.isList ? instances : (instances[0] ?? null)
    }
  }
  return field.kind === 'value' ? (owner) => valueAt(owner as Record<string, unknown>, field) : undefined
}

function valueAt(owner: Readonly<Record<string, unknown>>, field: FieldModel): unknown {
  // The object within an attribute, whose own value is requested.
  if (field.uris[0] === 'value') return toScalar(memberOf(owner, undefined), field.of)
  if (!field.isList) {
    const instance = instanceOf(owner, field.uris)
    return instance === undefined ? null : toScalar(memberOf(instance, field.member), field.of)
  }
  const values = instancesOf(owner, field.uris).flatMap((one) => [memberOf(one, field.member)].flat())
  return values.map((one) => toScalar(one, field.of)).filter((one) => one !== null)
}

// ---- Queries

function rootOf(model: Model, field: GraphQLField<unknown, unknown>): Resolve {
  const isConnection = field.name.endsWith('Connection') && field.args.some(({ name }) => name === 'after')
  return (_source, given: GivenArguments, operation, info) => {
    const type = model.types.get(rootTypeName(info))
    if (type === undefined || type.classes.length === 0) {
      throw new GraphQLError(`${field.name} returns a type without a class, so it cannot be queried`)
    }
    const criteria = criteriaOf(model, type, given, info)
    const ranking = rankingOf(given, criteria.near)
    if (isConnection) {
      return connection(operation.selection, criteria, given, ranking)
    }
    return operation.selection.select(criteria, pageOf(given), ranking)
  }
}

/** The type of the entities that a root field returns. */
export function rootTypeName({ returnType }: Pick<GraphQLResolveInfo, 'returnType'>): string {
  return String(returnType)
    .replace(/[[\]!]/g, '')
    .replace(/Connection$/, '')
}

/** The criteria in the arguments of a root field. */
export function criteriaOf(
  model: Model,
  type: TypeModel,
  given: GivenArguments,
  info: GraphQLResolveInfo,
): QueryCriteria {
  const field = info.parentType.getFields()[info.fieldName]
  return toCriteria(model, type, given, (name) => field?.args.find((one) => one.name === name)?.type)
}

/** Offset and limit; as in the original, 0 means unset. */
function pageOf(given: GivenArguments): { offset: number; limit: number } {
  const [offset, limit] = [Number(given['offset'] ?? 0), Number(given['limit'] ?? 0)]
  if (offset < 0) throw refuse('offset must be 0 or more')
  if (limit < 0) throw refuse('limit must be 0 or more; 0 means the default')
  const most = limits.searchPageMax.value
  if (offset + limit > most) throw refuse(`offset plus limit must be at most ${most}`)
  return { offset, limit: limit === 0 ? limits.searchPageDefault.value : limit }
}

const refuse = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })
