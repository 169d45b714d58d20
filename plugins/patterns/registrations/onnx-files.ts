/**
 * The gateway's ONNX models behind registered pattern models. A file that a client sent is stored as a model
 * of the gateway, and removed with the last registered model that uses it. A folder belongs to the operator.
 */
import { limits } from '#base/limits/limits.ts'
import { isGatewayError, toGatewayError } from '#base/register/errors.ts'
import type { ModelsPort } from '#contract'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ModelRules } from '#plugins/patterns/groups/active-model.ts'
import { featureCountOf } from '#plugins/patterns/models/features.ts'
import { classOf, type OnnxModel } from '#plugins/patterns/models/onnx-model.ts'
import { checkLabelCount } from './model-document.ts'

export type OnnxPort = Pick<ModelsPort, 'described' | 'run' | 'storeFile' | 'remove'>

type Checked = Pick<ModelRules, 'features' | 'properties' | 'labels'> & { readonly model: OnnxModel }

export const hasOnnx = (rules: ModelRules): rules is ModelRules & { readonly model: OnnxModel } =>
  rules.model.kind === 'onnx'

export function createOnnxFiles(models: OnnxPort) {
  /** Why files of registered models could not be stored again after a start. */
  const failures = new Map<string, string>()

  async function store({ features, properties, model: { name, file } }: Checked): Promise<void> {
    if (file === undefined || models.described(name) !== undefined) return
    await models.storeFile({
      name,
      kind: 'pattern',
      file,
      inputNumbers: featureCountOf(features, properties.length),
      licence: 'unknown',
      card: '# Pattern model\n\nSent to the pattern extractor as a file, without golden vectors.\n',
    })
  }

  return Object.freeze({
    /**
     * Stores the file, if there is one, and runs the model once.
     * @throws GatewayError if the model must not be used, or its process does not run
     */
    async check(rules: Checked): Promise<void> {
      await store(rules)
      const { features, properties, labels, model } = rules
      const found = models.described(model.name)
      if (found === undefined) throw badRequestData(`there is no usable ONNX model ${model.name}`, 'model')
      if (found.kind !== 'pattern')
        throw badRequestData(`${model.name} is of kind ${found.kind}, expected pattern`, 'model')
      const expected = featureCountOf(features, properties.length)
      if (found.inputNumbers !== expected)
        throw badRequestData(
          `${model.name} expects ${found.inputNumbers} numbers, but ${properties.length} observable properties have ${expected} features of kind ${features}`,
          'model',
        )
      if (found.outputNumbers > limits.patternComponentsMax.value)
        throw badRequestData(
          `has ${found.outputNumbers} classes, at most ${limits.patternComponentsMax.value} are allowed`,
          'model',
        )
      if (labels.length > 0) checkLabelCount(labels, found.outputNumbers)
      if (classOf(await models.run(model.name, new Float32Array(expected), 1)) === undefined)
        throw badRequestData(
          'its outputs must be the probability of each class (0 to 1, with the sum 1), such as from Softmax',
          'model',
        )
    },
    /** Stores the file of a registered model again, if somebody removed it. */
    async restore(id: string, rules: Checked): Promise<void> {
      failures.delete(id)
      await store(rules).catch((error: unknown) => {
        failures.set(id, `the ONNX model of ${id} is not stored: ${toGatewayError(error).message}`)
      })
    },
    /** Removes a stored file, unless somebody did so. */
    async remove(name: string): Promise<void> {
      await models.remove(name).catch((error: unknown) => {
        if (!isGatewayError(error, 'model.not-found')) throw error
      })
    },
    failures: (): readonly string[] => [...failures.values()],
  })
}
