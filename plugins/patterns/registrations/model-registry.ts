/**
 * The registered models: their documents on disk, applied by the analysis, with their subscriptions at the
 * broker. Requests that change them run one after the other.
 */
import { randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { ModelRules } from '#plugins/patterns/groups/active-model.ts'
import type { Analysis } from '#plugins/patterns/groups/analysis.ts'
import type { LogReader } from '#plugins/patterns/groups/log-reader.ts'
import type { PatternStatements } from '#plugins/patterns/groups/pattern-statements.ts'
import type { LabelQueue } from '#plugins/patterns/labelling/label-queue.ts'
import { parsePatternModel } from './model-document.ts'
import { type createModelSubscriptions, subscriptionId } from './model-subscriptions.ts'
import { createOnnxFiles, hasOnnx, type OnnxPort } from './onnx-files.ts'

export interface ModelRegistryPorts {
  readonly table: PatternStatements
  readonly analysis: Analysis
  readonly reader: LogReader
  readonly labels: Pick<LabelQueue, 'figures'>
  readonly onnx: OnnxPort
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
  /** Name of the ONNX model that was stored from its file. */
  readonly storedOnnx: string | undefined
}

export type ModelRegistry = ReturnType<typeof createModelRegistry>

export function createModelRegistry({
  table,
  analysis,
  reader,
  labels,
  onnx,
  subscriptions,
  now,
}: ModelRegistryPorts) {
  const models = new Map<string, Registered>()
  const files = createOnnxFiles(onnx)
  /** The change in progress; the next one waits for it. */
  let last: Promise<unknown> = Promise.resolve()
  const unreadable: string[] = []

  for (const { id, created, document } of table.models()) {
    try {
      const input = parsedJson(document) as JsonObject
      const rules = parsePatternModel(id, input)
      analysis.add(withoutFile(rules))
      models.set(id, registeredOf(rules, { created, input, size: document.length }))
      if (hasOnnx(rules)) void inTurn(() => files.restore(id, rules))
    } catch (error) {
      unreadable.push(`model ${id} is not applied: ${(error as Error).message}`)
    }
  }

  function inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = last.then(change)
    last = turn.catch(() => undefined)
    return turn
  }

  /** Removes the stored file of a model that no registered model uses. */
  async function release({ storedOnnx }: Registered): Promise<void> {
    if (storedOnnx === undefined) return
    const isUsed = [...models.values()].some((one) => one.storedOnnx === storedOnnx)
    if (!isUsed) await files.remove(storedOnnx)
  }

  async function register(json: Json | undefined): Promise<JsonObject> {
    const id = randomBytes(12).toString('hex')
    const rules = parsePatternModel(id, json)
    const document = JSON.stringify(json)
    const own = { created: now(), input: json as JsonObject, size: document.length }
    const registered = registeredOf(rules, own)
    try {
      checkRoom(own.size)
      if (hasOnnx(rules)) await files.check(rules)
      await reader.change(() => {
        table.putModel({ id, created: own.created, document })
        models.set(id, registered)
        analysis.add(withoutFile(rules))
      })
    } catch (error) {
      await release(registered)
      throw error
    }
    await check()
    return documentOf(registered)
  }

  async function remove(id: string): Promise<boolean> {
    const registered = models.get(id)
    if (registered === undefined) return false
    await reader.change(() => {
      table.removeModel(id)
      models.delete(id)
      analysis.remove(id)
    })
    await release(registered)
    await subscriptions.remove(id)
    return true
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
    register: (json: Json | undefined): Promise<JsonObject> => inTurn(() => register(json)),
    /** Removes a model and its subscriptions; its Events remain until they expire. */
    remove: (id: string): Promise<boolean> => inTurn(() => remove(id)),
    /** All models with their state. */
    all: (): readonly JsonObject[] => [...models.keys()].map((id) => withStatus(id)),
    get: (id: string): JsonObject | undefined => (models.has(id) ? withStatus(id) : undefined),
    check,
    complaints: (): readonly string[] => [...unreadable, ...files.failures(), ...subscriptions.failures()],
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
        ...labels.figures(id),
      },
    }
  }
}

const registeredOf = (
  { id, properties, model }: ModelRules,
  own: Pick<Registered, 'created' | 'input' | 'size'>,
): Registered => {
  const isStored = model.kind === 'onnx' && model.file !== undefined
  return { ...own, id, properties, storedOnnx: isStored ? model.name : undefined }
}

/** The stored model has the file. */
const withoutFile = (rules: ModelRules): ModelRules =>
  hasOnnx(rules) ? { ...rules, model: { kind: 'onnx', name: rules.model.name } } : rules
