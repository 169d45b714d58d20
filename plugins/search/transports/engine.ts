/**
 * GraphQL as it runs here: the schema, what an operation is given, and the three ways operations arrive (HTTP, Server-Sent
 * Events, WebSocket). This and what it imports is loaded at the first request, since an idle gateway does not need it.
 */

import { execute, GraphQLError, subscribe } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { BrokerPort, ChangesPort, RouteEnvironment } from '#contract'
import { createSelection } from '#plugins/search/reads/criteria-selection.ts'
import { createFeed } from '#plugins/search/reads/feed.ts'
import { buildSchema } from '#plugins/search/reads/graphql-schema.ts'
import { createReads, type Reads } from '#plugins/search/reads/reads.ts'
import type { LiveOperation } from '#plugins/search/reads/subscribers.ts'
import type { SchemaMistake, SchemaText } from '#plugins/search/schema/schema-merge.ts'
import { answerHttp } from './http-operations.ts'
import { createDocuments, isErrors } from './operation-documents.ts'
import type { Runner } from './runner.ts'
import { createSockets } from './sockets.ts'
import { answerStream } from './sse.ts'

export interface EnginePorts {
  readonly broker: BrokerPort
  /** Who answers queries that rank. */
  readonly ranking: BrokerPort
  /** The index over what is searched, where it is of this gateway. */
  readonly index?: BrokerPort | undefined
  /** Where what is searched is this gateway. */
  readonly changes: ChangesPort | undefined
}

export interface EngineSettings {
  readonly introspection: boolean
  readonly timeoutMs: number
}

export interface Engine {
  readonly mistakes: readonly SchemaMistake[]
  http(request: Request, environment: RouteEnvironment): Promise<Response>
  /** A subscription as text/event-stream. */
  stream(request: Request, environment: RouteEnvironment): Promise<Response>
  /** Takes a WebSocket that speaks graphql-transport-ws. */
  socket(environment: RouteEnvironment): Response
  status(): object
  close(): void
}

export async function createEngine(
  ports: EnginePorts,
  settings: EngineSettings,
  schemas: readonly SchemaText[],
): Promise<Engine> {
  const { schema, model, mistakes } = await buildSchema(schemas)
  const documents = createDocuments({ schema, model, introspection: settings.introspection })
  const feed = createFeed(ports.changes)
  let running = 0

  function operation(signal: AbortSignal): LiveOperation & { reads: Reads } {
    const fresh = () => createReads({ ...ports, model, signal, timeoutMs: settings.timeoutMs })
    const reads = fresh()
    const made = {
      reads,
      selection: createSelection(model, reads),
      feed,
      renew() {
        made.reads = fresh()
        made.selection = createSelection(model, made.reads)
      },
    }
    return made
  }

  const runner: Runner = {
    admit(parameters, signal) {
      const admitted = documents.admit(parameters)
      if (isErrors(admitted)) return admitted
      const { document, operationName, variableValues, operation: kind } = admitted
      // A subscription lasts; its reads are bounded one by one.
      const isLasting = kind.operation === 'subscription'
      const until = isLasting ? { signal, end: () => {} } : patienceWith(signal)
      return {
        ...{ schema, document, variableValues },
        operationName: operationName ?? null,
        contextValue: Object.assign(operation(until.signal), { end: until.end }) satisfies Bounded,
        hideSuggestions: !settings.introspection,
      }
    },
    async run(args) {
      const { reads, end } = args.contextValue as Bounded & { reads: Reads }
      if (running >= limits.searchOperationsMax.value) {
        end()
        const message = `${running} operations are being answered, which is the most; repeat in a moment`
        return { errors: [new GraphQLError(message, { extensions: { code: 'BUSY' } })] }
      }
      running++
      try {
        const result = await execute(args)
        const warnings = reads.warnings()
        const told = { reads: reads.statistics(), ...(warnings.length > 0 && { warnings }) }
        return { ...result, extensions: { ...result.extensions, ...told } }
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
    http: (request: Request, environment: RouteEnvironment) => answerHttp(runner, request, environment),
    stream: (request: Request, environment: RouteEnvironment) => answerStream(runner, request, environment),
    socket: (environment: RouteEnvironment) => sockets.take(environment),
    status: () => ({ subscriptions: feed.count(), sockets: sockets.count(), running }),
    close() {
      feed.close()
      sockets.close()
    },
  } satisfies Engine)
}

/** An operation that ends. */
interface Bounded extends LiveOperation {
  end(): void
}

/**
 * Aborted with a signal, or when an operation takes too long. Nothing is left of it when it ends: signals that the platform combines
 * are held weakly, which keeps what was read for an answer in memory until a whole collection of garbage.
 */
function patienceWith(signal: AbortSignal): { readonly signal: AbortSignal; end(): void } {
  const patience = new AbortController()
  const abort = (): void => patience.abort()
  const timer = setTimeout(abort, limits.searchOperationMs.value).unref()
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return {
    signal: patience.signal,
    end() {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    },
  }
}
