/**
 * Prepares documents from clients: limits bytes and tokens before parsing, validates against the schema, and
 * estimates the cost before execution. Caches recently used documents by their text.
 */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  validate,
} from 'graphql'
import { limits } from '#base/limits/limits.ts'
import { costOf, costRefusal } from '#plugins/search/schema/cost.ts'
import type { Model } from '#plugins/search/schema/model.ts'

/** Parameters of a client's request. */
export interface OperationParameters {
  readonly query?: unknown
  readonly operationName?: unknown
  readonly variables?: unknown
}

export interface Admitted {
  readonly document: DocumentNode
  readonly operation: OperationDefinitionNode
  readonly operationName: string | undefined
  readonly variableValues: Readonly<Record<string, unknown>>
}

export interface DocumentPorts {
  readonly schema: GraphQLSchema
  readonly model: Model
  /** Whether clients may query the schema. */
  readonly introspection: boolean
}

export function createOperationDocuments({ schema, model, introspection }: DocumentPorts) {
  const kept = new Map<string, DocumentNode | readonly GraphQLError[]>()
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule]

  function checked(query: string): DocumentNode | readonly GraphQLError[] {
    const known = kept.get(query)
    if (known !== undefined) {
      // Used now, so it is evicted last.
      kept.delete(query)
      kept.set(query, known)
      return known
    }
    const found = parsed(query)
    const errors =
      found instanceof GraphQLError
        ? [found]
        : validate(schema, found, rules, { maxErrors: 20, hideSuggestions: !introspection })
    const document = errors.length > 0 ? errors : (found as DocumentNode)
    if (query.length <= limits.searchKeptCharacters.value) kept.set(query, document)
    if (kept.size > limits.searchDocumentsKept.value) kept.delete(kept.keys().next().value!)
    return document
  }

  return Object.freeze({
    /** Returns an executable operation, or the errors. */
    admit({ query, operationName, variables }: OperationParameters): Admitted | readonly GraphQLError[] {
      if (typeof query !== 'string') return [refuse('query is missing: a GraphQL document as text')]
      const isNamed = typeof operationName === 'string' && operationName !== ''
      const variableValues = isObject(variables) ? variables : {}
      const document = checked(query)
      if (isErrors(document)) return document
      const operation = getOperationAST(document, isNamed ? operationName : undefined)
      if (!operation) {
        const why = isNamed ? `it has no operation ${operationName}` : 'set operationName to select one'
        return [refuse(`The document has several operations, or none: ${why}`)]
      }
      const refused = costRefusal(costOf(schema, model, document, operation, variableValues))
      if (refused !== undefined) return [refused]
      return { document, operation, operationName: isNamed ? operationName : undefined, variableValues }
    },
  })
}

function parsed(query: string): DocumentNode | GraphQLError {
  const bytes = Buffer.byteLength(query)
  if (bytes > limits.searchDocumentBytes.value) {
    return refuse(
      `The document has ${bytes} bytes; at most ${limits.searchDocumentBytes.value}`,
      'TOO_COMPLEX',
    )
  }
  try {
    return parse(query, { maxTokens: limits.searchDocumentTokens.value })
  } catch (error) {
    return error instanceof GraphQLError ? error : refuse((error as Error).message)
  }
}

export const isErrors = (found: object): found is readonly GraphQLError[] => Array.isArray(found)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const refuse = (message: string, code = 'BAD_REQUEST'): GraphQLError =>
  new GraphQLError(message, { extensions: { code } })
