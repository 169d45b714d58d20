/**
 * The models of a gateway: which exist, which can be used, and for which streams. Folders are compared
 * regularly, so that a changed folder takes effect without a restart. Nothing runs, and no process exists,
 * before the first call of a model.
 */
import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import { rowNumbers } from '#config/schema/model-rows.ts'
import type { ModelDocument } from '#config/schema/model-schema.ts'
import type { LinearModel, ModelDescription, ModelFile, ModelKind, ModelsPort } from '#contract'
import { type CallableModel, createModelCalls } from '#inference/calls/model-calls.ts'
import { createInferenceLink, type InferenceStatus } from '#inference/child/inference-link.ts'
import type { ModelTimes } from '#inference/child/inference-protocol.ts'
import { type Assign, compileAssign, type MatchRank } from '#inference/folders/assignment.ts'
import { describedFiles } from '#inference/folders/described-files.ts'
import { type FoundFolder, findModels, type ModelSource } from '#inference/folders/folder-scan.ts'
import { linearFiles } from '#inference/folders/linear-files.ts'
import { readModelDocument } from '#inference/folders/model-folder.ts'
import { recoverUploads, removeUpload, storeUpload, type UploadedFiles } from '#inference/folders/uploads.ts'
import type { Expand } from '#ngsi-ld/context/context.ts'

export interface ModelsPorts extends Instruments {
  /** Expands the names in queries. */
  readonly expand: Expand
  /** Entry file of the process, if it is not the usual one. */
  readonly program?: URL | undefined
}

export interface ModelsSettings {
  readonly isEnabled: boolean
  /** Folder of the models that are part of the program. */
  readonly shipped: string
  /** Folder of the models of this gateway. */
  readonly uploaded: string
  /** Assignments that replace those of the named models. */
  readonly assign: readonly (Assign & { readonly model: string })[]
}

/** A model for operators. */
export interface ModelView {
  readonly name: string
  readonly source: ModelSource
  /** unchecked: its files are checked at its first call. loaded: it is in the process. */
  readonly state: 'unchecked' | 'checked' | 'loaded' | 'refused'
  readonly reason?: string
  readonly version?: string
  readonly kind?: ModelKind
  readonly sha256?: string
  readonly licence?: string
  readonly assign: readonly Assign[]
}

/** A version of a model folder. */
interface KnownModel {
  readonly found: FoundFolder
  /** Undefined if model.json is wrong. */
  readonly callable?: CallableModel
  readonly description?: ModelDescription
  readonly assigns: readonly Assign[]
  readonly rank: MatchRank
  isChecked: boolean
  reason?: string
}

export interface Models extends ModelsPort {
  /** Reads the folders; later changes are found in the background. */
  start(): Promise<void>
  list(): readonly ModelView[]
  /** Measures a model in the process. @throws model.not-found */
  measure(name: string): Promise<ModelTimes>
  /** Stores the folder of a model after all checks. @throws model.invalid, model.too-many */
  add(files: UploadedFiles): Promise<ModelDescription>
  status(): InferenceStatus
  complaints(): readonly string[]
  close(): Promise<void>
}

export function createModels(ports: ModelsPorts, settings: ModelsSettings): Models {
  const { log } = ports
  const link = createInferenceLink(ports, ports.program)
  const calls = createModelCalls({ link, metrics: ports.metrics, onRefused })
  let known: ReadonlyMap<string, KnownModel> = new Map()
  const listeners = new Set<() => void>()
  let versions = 0
  /** Settles when no change of folders is in progress. */
  let previous: Promise<unknown> = Promise.resolve()
  let noRuntime: string | undefined

  function onRefused({ key, document }: CallableModel, error: GatewayError): void {
    if (error.code === 'inference.no-runtime') noRuntime = error.message
    const one = known.get(document.name)
    if (one?.callable?.key !== key || one.reason !== undefined) return
    one.reason = error.message
    if (noRuntime === undefined) log.warn('model.refused', { model: document.name, reason: error.message })
    changed()
  }

  function changed(): void {
    for (const listener of listeners) listener()
  }

  async function versionOf(found: FoundFolder): Promise<KnownModel> {
    const overriding = settings.assign.filter(({ model }) => model === found.name)
    try {
      const document = await readModelDocument(found.folder)
      const assigns =
        overriding.length > 0 ? overriding : document.assign === undefined ? [] : [document.assign]
      const rank = compileAssign(assigns, ports.expand)
      const callable = { key: `${found.name} ${versions++}`, folder: found.folder, document }
      return { found, callable, description: descriptionOf(document), assigns, rank, isChecked: false }
    } catch (error) {
      const reason = toGatewayError(error).message
      log.warn('model.refused', { model: found.name, reason })
      return { found, assigns: overriding, rank: () => 0, isChecked: false, reason }
    }
  }

  async function scan(): Promise<void> {
    const found = await findModels(settings)
    const isSame = (one: FoundFolder): boolean => {
      const before = known.get(one.name)?.found
      return before?.stamp === one.stamp && before.folder === one.folder
    }
    const removed = [...known.values()].filter(({ found: { name } }) => !found.has(name))
    const fresh = [...found.values()].filter((one) => !isSame(one))
    if (removed.length === 0 && fresh.length === 0) return
    const next = new Map<string, KnownModel>()
    for (const one of found.values())
      next.set(one.name, isSame(one) ? known.get(one.name)! : await versionOf(one))
    const before = known
    known = next
    log.info('model.changed', {
      changed: fresh.map(({ name }) => name),
      removed: removed.map(({ found: { name } }) => name),
    })
    changed()
    for (const {
      found: { name },
      callable,
    } of before.values())
      if (callable !== undefined && next.get(name)?.callable !== callable)
        await calls.forget(callable.key).catch(() => undefined)
  }

  /** Runs changes of folders one after the other. */
  function inTurn<T>(change: () => Promise<T>): Promise<T> {
    const mine = previous.then(change)
    previous = mine.catch(() => undefined)
    return mine
  }

  const usable = (): readonly (KnownModel & { description: ModelDescription; callable: CallableModel })[] =>
    noRuntime !== undefined || !settings.isEnabled
      ? []
      : ([...known.values()].filter((one) => one.callable !== undefined && one.reason === undefined) as never)

  function callableOf(name: string): KnownModel & { readonly callable: CallableModel } {
    if (!settings.isEnabled) throw new GatewayError('model.not-found', 'models.enabled is false')
    const one = known.get(name)
    if (one === undefined) throw new GatewayError('model.not-found', `there is no model ${name}`)
    if (one.callable === undefined || one.reason !== undefined)
      throw new GatewayError('model.invalid', `${name} is not used: ${one.reason}`)
    return one as never
  }

  async function used<T>(name: string, use: (model: CallableModel) => Promise<T>): Promise<T> {
    const one = callableOf(name)
    const result = await use(one.callable)
    one.isChecked = true
    return result
  }

  async function add(files: UploadedFiles): Promise<ModelDescription> {
    const isNew = (name: string): boolean => {
      return known.get(name)?.found.source !== 'uploaded'
    }
    const description = await storeUpload(files, {
      folder: settings.uploaded,
      async check(folder, document) {
        const uploads = [...known.values()].length
        if (isNew(document.name) && uploads >= limits.modelsMax.value)
          throw new GatewayError('model.too-many', `there are ${uploads} models`)
        const trial = { key: `upload ${versions++}`, folder, document }
        try {
          await calls.load(trial)
        } finally {
          await calls.forget(trial.key)
        }
      },
    })
    await scan()
    return descriptionOf(description)
  }

  let timer: NodeJS.Timeout | undefined
  const scanAgain = (): void => {
    void inTurn(scan).catch((error: unknown) => {
      log.warn('model.refused', { reason: toGatewayError(error).message })
    })
  }

  async function addInTurn(files: UploadedFiles): Promise<ModelDescription> {
    if (!settings.isEnabled) throw new GatewayError('model.not-found', 'models.enabled is false')
    return inTurn(() => add(files))
  }

  return Object.freeze({
    async start() {
      if (!settings.isEnabled) return
      await recoverUploads(settings.uploaded)
      await inTurn(scan)
      timer = setInterval(scanAgain, limits.modelScanMs.value).unref()
    },
    assigned(subject) {
      let best: { readonly rank: number; readonly description: ModelDescription } | undefined
      for (const { rank: rankOf, description } of usable()) {
        if (description.kind !== subject.kind) continue
        const rank = rankOf(subject)
        if (rank > (best?.rank ?? 0)) best = { rank, description }
      }
      return best?.description
    },
    onChange(listener) {
      listeners.add(listener)
      return { close: () => void listeners.delete(listener) }
    },
    run: async (name, inputs, rows) => used(name, (model) => calls.run(model, inputs, rows)),
    measure: async (name) => used(name, calls.measure),
    list: () => [...known.values()].map((one) => viewOf(one, calls.isLoaded(one.callable?.key ?? ''))),
    add: addInTurn,
    described: (name) => usable().find(({ found }) => found.name === name)?.description,
    storeLinear: async (model: LinearModel) => addInTurn(linearFiles(model)),
    storeFile: async (model: ModelFile) => addInTurn(describedFiles(model)),
    remove: (name) =>
      inTurn(async () => {
        const one = known.get(name)
        if (one === undefined) throw new GatewayError('model.not-found', `there is no model ${name}`)
        if (one.found.source === 'shipped')
          throw new GatewayError('model.shipped', `${name} is shipped with the gateway`)
        await removeUpload(one.found.folder)
        await scan()
      }),
    status: link.status,
    complaints() {
      const refused = [...known.values()].flatMap(({ found: { name }, reason }) =>
        reason === undefined ? [] : [`the model ${name} is not used: ${reason}`],
      )
      return noRuntime === undefined ? refused : [noRuntime]
    },
    async close() {
      clearInterval(timer)
      await previous
      await link.stop()
    },
  } satisfies Models)
}

function descriptionOf(document: ModelDocument): ModelDescription {
  const { name, version, kind, inputs, outputs, window, trainedRange, sha256, scaler } = document
  return Object.freeze({
    name,
    version,
    kind,
    inputs,
    outputs,
    window,
    trainedRange,
    sha256,
    inputNumbers: rowNumbers(inputs),
    outputNumbers: rowNumbers(outputs),
    isScaled: scaler !== undefined,
  })
}

function viewOf({ found, callable, reason, isChecked, assigns }: KnownModel, isLoaded: boolean): ModelView {
  const { name, source } = found
  const shownAssigns = assigns.map(({ property, stream, q }) => ({
    ...(property !== undefined && { property }),
    ...(stream !== undefined && { stream }),
    ...(q !== undefined && { q }),
  }))
  const state = reason !== undefined ? 'refused' : isLoaded ? 'loaded' : isChecked ? 'checked' : 'unchecked'
  return {
    name,
    source,
    state,
    ...(reason !== undefined && { reason }),
    ...(callable !== undefined && {
      version: callable.document.version,
      kind: callable.document.kind,
      sha256: callable.document.sha256,
      licence: callable.document.licence,
    }),
    assign: shownAssigns,
  }
}
