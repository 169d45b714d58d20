/**
 * The inference process: loads models and runs them, one request after the other. It may die at any time; the
 * gateway starts it again. It ends when the gateway does, and stores nothing.
 */
import { type ErrorCode, GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { InferenceAnswer, ToInference } from './inference-protocol.ts'
import type { LoadedModel, loadModel } from './loaded-model.ts'

type Runtime = { readonly loadModel: typeof loadModel }

const models = new Map<string, LoadedModel>()

/** Loads the native library at the first model. @throws inference.no-runtime */
async function runtime(): Promise<Runtime> {
  try {
    return await import('./loaded-model.ts')
  } catch (error) {
    const [reason] = (error as Error).message.split('\n')
    const board = `${process.platform}-${process.arch}`
    throw new GatewayError('inference.no-runtime', `onnxruntime-node cannot be loaded on ${board}: ${reason}`)
  }
}

async function answerOf(request: ToInference): Promise<InferenceAnswer> {
  if (request.kind === 'load') {
    const { loadModel } = await runtime()
    const model = await loadModel(request.folder, request.document)
    await models.get(request.key)?.unload()
    models.set(request.key, model)
    return { kind: 'loaded' }
  }
  const model = models.get(request.key)
  if (request.kind === 'unload') {
    models.delete(request.key)
    await model?.unload()
    return { kind: 'unloaded' }
  }
  if (model === undefined)
    throw new GatewayError('gateway.internal', `the model ${request.key} is not loaded`)
  if (request.kind === 'measure') return { kind: 'measured', times: await model.measure() }
  return { kind: 'outputs', outputs: await model.run(request.inputs, request.rows) }
}

const codeOf = (error: unknown): ErrorCode => (isGatewayError(error) ? error.code : 'model.failed')

process.on('message', (request: ToInference) => {
  void answerOf(request)
    .catch((error: unknown): InferenceAnswer => {
      const message = error instanceof Error ? error.message : String(error)
      return { kind: 'failed', code: codeOf(error), message }
    })
    .then((answer) => process.send?.({ ...answer, resident: process.memoryUsage.rss() }))
})
process.on('disconnect', () => process.exit(0))
// Ctrl-C and systemd signal all processes of the gateway. The gateway ends this one when it closes.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
