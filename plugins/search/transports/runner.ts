/** Runs GraphQL operations for all transports. */
import type { ExecutionArgs, ExecutionResult, GraphQLError, subscribe } from 'graphql'
import type { OperationParameters } from './operation-documents.ts'

/** Runs operations; shared by the three transports. */
export interface Runner {
  /** Returns an executable operation, or the errors. @param signal aborted when the client disconnects */
  admit(parameters: OperationParameters, signal: AbortSignal): ExecutionArgs | readonly GraphQLError[]
  /** Executes an operation and adds its cost to the extensions. */
  run(args: ExecutionArgs): Promise<ExecutionResult>
  subscribe(args: ExecutionArgs): ReturnType<typeof subscribe>
}
