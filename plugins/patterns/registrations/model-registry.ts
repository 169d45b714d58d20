/**
 * The registered models: their documents on disk, applied by the analysis, with their subscriptions at the
 * broker.
 */
import { randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { Analysis } from '#plugins/patterns/groups/analysis.ts'
import type { LogReader } from '#plugins/patterns/groups/log-reader.ts'
import type { PatternStatements } from '#plugins/patterns/groups/pattern-statements.ts'
import { parseModelDocument } from './model-document.ts'
import { type createModelSubscriptions, subscriptionId } from './model-subscriptions.ts'

export interface ModelRegistryPorts {
  readonly table: PatternStatements
  readonly analysis: Analysis
  readonly reader: LogReader
  readonly subscriptions: ReturnType<typeof createModelSubscriptions>
  readonly now: () => number
}

interface Registered {
  readonly id: string
  readonly created: number
  /** As the client sent it. */
  readonly input: JsonObject
  /** Characters of its text. */
  readonly size: number
  readonly properties: readonly string[]
}

export type ModelRegistry = ReturnType<typeof createModelRegistry>

export function createModelRegistry({ table, analysis, reader, subscriptions, now }: ModelRegistryPorts) {
  const models = new Map<string, Registered>()
  const unreadable: string[] = []

  for (const { id, created, document } of table.models()) {
    try {
      const input = parsedJson(document) as JsonObject
      const rules = parseModelDocument(id, input)
      analysis.add(rules)
      models.set(id, { id, created, input, size: document.length, properties: rules.properties })
    } catch (error) {
      unreadable.push(`model ${id} is not applied: ${(error as Error).message}`)
    }
  }

  function checkRoom(size: number): void {
    const sizes = [...models.values()].reduce((sum, one) => sum + one.size, size)
    if (models.size < limits.patternModelsMax.value && sizes <= limits.patternModelsBytes.value) return
    throw new GatewayError(
      'patterns.models-full',
      `at most ${limits.patternModelsMax.value} models with ${limits.patternModelsBytes.value} bytes can be registered`,
    )
  }

  const documentOf = ({ id, input }: Registered): JsonObject => ({
    id,
    subscriptionId: subscriptionId(id, 'stream'),
    ...input,
  })

  const check = (): Promise<void> =>
    subscriptions.check(
      [...models.values()].map(({ id, properties }) => ({
        id,
        properties,
        members: analysis.membersOf(id),
      })),
    )

  return Object.freeze({
    /** @throws GatewayError */
    async register(json: Json | undefined): Promise<JsonObject> {
      const id = randomBytes(12).toString('hex')
      const rules = parseModelDocument(id, json)
      const document = JSON.stringify(json)
      const registered: Registered = {
        id,
        created: now(),
        input: json as JsonObject,
        size: document.length,
        properties: rules.properties,
      }
      await reader.change(() => {
        checkRoom(registered.size)
        table.putModel({ id, created: registered.created, document })
        models.set(id, registered)
        analysis.add(rules)
      })
      await check()
      return documentOf(registered)
    },
    /** Removes a model and its subscriptions; its Events remain until they expire. */
    async remove(id: string): Promise<boolean> {
      if (!models.has(id)) return false
      await reader.change(() => {
        table.removeModel(id)
        models.delete(id)
        analysis.remove(id)
      })
      await subscriptions.remove(id)
      return true
    },
    /** All models with their state. */
    all: (): readonly JsonObject[] => [...models.keys()].map((id) => withStatus(id)),
    get: (id: string): JsonObject | undefined => (models.has(id) ? withStatus(id) : undefined),
    check,
    complaints: (): readonly string[] => [...unreadable, ...subscriptions.failures()],
  })

  function withStatus(id: string): JsonObject {
    const registered = models.get(id)!
    const { groups, streams, windows, lastWindowEnd } = analysis.figures(id)!
    return {
      ...documentOf(registered),
      status: {
        created: new Date(registered.created).toISOString(),
        state: reader.isReading() ? 'reading' : groups === 0 ? 'no group' : 'running',
        groups,
        streams,
        windows,
        lastWindowEnd: lastWindowEnd === undefined ? null : new Date(lastWindowEnd).toISOString(),
        observationSubscriptionId: subscriptionId(id, 'observation'),
      },
    }
  }
}
