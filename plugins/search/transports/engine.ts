/**
 * Runs GraphQL: the schema, the context of an operation, and three transports (HTTP, Server-Sent Events,
 * WebSocket). This module and its imports are loaded at the first request, because an idle gateway does not
 * need them.
 */

import { execute, GraphQLError, subscribe } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { BrokerPort, ChangesPort, RouteEnvironment } from '#contract'
import { createSelection } from '#plugins/search/reads/criteria-selection.ts'
import { createFeed } from '#plugins/search/reads/feed.ts'
import { buildSchema } from '#plugins/search/reads/graphql-schema.ts'
import { createInference } from '#plugins/search/reads/infer.ts'
import { createReads, type Reads } from '#plugins/search/reads/reads.ts'
import type { LiveOperation } from '#plugins/search/reads/subscribers.ts'
import type { SchemaText } from '#plugins/search/schema/schema-merge.ts'
import { answerHttp } from './http-operations.ts'
import { createOperationDocuments, isErrors } from './operation-documents.ts'
import type { Runner } from './runner.ts'
import { createSockets } from './sockets.ts'
import { answerStream } from './sse.ts'

export interface EnginePorts {
  readonly broker: BrokerPort
  /** Answers queries that rank. */
  readonly ranking: BrokerPort
  /** The index over the backend, if the backend is this gateway. */
  readonly index?: BrokerPort | undefined
  /** The change log, if the backend is this gateway. */
  readonly changes: ChangesPort | undefined
}

export interface EngineSettings {
  readonly introspection: boolean
  readonly timeoutMs: number
}

export type Engine = Awaited<ReturnType<typeof createEngine>>

export async function createEngine(
  ports: EnginePorts,
  settings: EngineSettings,
  schemas: readonly SchemaText[],
) {
  const { schema, model, mistakes } = await buildSchema(schemas)
  const documents = createOperationDocuments({ schema, model, introspection: settings.introspection })
  const { broker, ranking, index, changes } = ports
  const feed = createFeed(changes)
  let running = 0

  function operation(signal: AbortSignal): LiveOperation & { reads: Reads } {
    const fresh = () => {
      const reads = createReads({ model, broker, ranking, index, signal, timeoutMs: settings.timeoutMs })
      return { reads, selection: createSelection(model, reads), inference: createInference(model, reads) }
    }
    const made = { ...fresh(), feed, renew: (): void => void Object.assign(made, fresh()) }
    return made
  }

  const runner: Runner = {
    admit(parameters, signal) {
      const admitted = documents.admit(parameters)
      if (isErrors(admitted)) return admitted
      const { document, operationName, variableValues, operation: kind } = admitted
      // A subscription is long-lived; its reads are limited one by one.
      const isLasting = kind.operation === 'subscription'
      const until = isLasting ? { signal, end: () => {} } : timeLimited(signal)
      return {
        schema,
        document,
        variableValues,
        operationName: operationName ?? null,
        contextValue: Object.assign(operation(until.signal), { end: until.end }) satisfies Bounded,
        hideSuggestions: !settings.introspection,
      }
    },
    async run(args) {
      const { reads, end } = args.contextValue as Bounded & { reads: Reads }
      if (running >= limits.searchOperationsMax.value) {
        end()
        const message = `too many operations are running (${running}); retry later`
        return { errors: [new GraphQLError(message, { extensions: { code: 'BUSY' } })] }
      }
      running++
      try {
        const result = await execute(args)
        const warnings = reads.warnings()
        const details = { reads: reads.statistics(), ...(warnings.length > 0 && { warnings }) }
        return { ...result, extensions: { ...result.extensions, ...details } }
      } finally {
        running--
        end()
      }
    },
    subscribe: (args) => subscribe(args),
  }
  const sockets = createSockets(runner)

  return Object.freeze({
    mistakes,
    http: (request: Request, environment: RouteEnvironment): Promise<Response> =>
      answerHttp(runner, request, environment),
    /** Answers a subscription as text/event-stream. */
    stream: (request: Request, environment: RouteEnvironment): Promise<Response> =>
      answerStream(runner, request, environment),
    /** Accepts a WebSocket with the protocol graphql-transport-ws. */
    socket: (environment: RouteEnvironment): Response => sockets.take(environment),
    status: (): object => ({ subscriptions: feed.count(), sockets: sockets.count(), running }),
    close(): void {
      feed.close()
      sockets.close()
    },
  })
}

/** An operation that ends. */
interface Bounded extends LiveOperation {
  end(): void
}

/**
 * A signal that aborts with the given one, or when the operation takes too long. `end` removes all
 * references: AbortSignal.any holds them weakly, which would keep the data that was read in memory until a
 * major collection.
 */
function timeLimited(signal: AbortSignal): { readonly signal: AbortSignal; end(): void } {
  const limited = new AbortController()
  const abort = (): void => limited.abort()
  const timer = setTimeout(abort, limits.searchOperationMs.value).unref()
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return {
    signal: limited.signal,
    end() {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    },
  }
}
