/** Settings of ONNX models; part of the schema. */
import { limits } from '#base/limits/limits.ts'
import { modelAssignment } from './model-schema.ts'
import { section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const modelAssigned = kind.groupOf('a group with model and one of property, stream and q', {
  /** Model. Its name. */
  model: kind.modelName(),
  ...modelAssignment,
})

export const models = section('ONNX models', {
  /** Enabled. false: no model is used, and plugins use their built-in methods. */
  enabled: setting(kind.flag(), true),
  /**
   * Assignments. Replace the assign of model.json of each model that is named here. One of property, stream
   * and q selects streams; an entry without them switches the model off.
   */
  assign: setting(kind.listOf('assignments', limits.modelsMax.value, modelAssigned), []),
})
