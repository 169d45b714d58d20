/** How an operation of GraphQL is run, whatever transport it came by. */
import type { ExecutionArgs, ExecutionResult, GraphQLError, subscribe } from 'graphql'
import type { Parameters } from './operation-documents.ts'

/** Runs operations; shared by the three ways. */
export interface Runner {
  /** What may be run, or why not. @param signal aborted when nobody waits any more */
  admit(parameters: Parameters, signal: AbortSignal): ExecutionArgs | readonly GraphQLError[]
  /** Runs one, with what it cost in its extensions. */
  run(args: ExecutionArgs): Promise<ExecutionResult>
  subscribe(args: ExecutionArgs): ReturnType<typeof subscribe>
}
