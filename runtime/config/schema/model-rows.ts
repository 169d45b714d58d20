/** The width of a row of tensors; beside the schema, which the inference process does not load. */
import type { ModelDocument } from './model-schema.ts'

/** Numbers of one row of these tensors. */
export function rowNumbers(tensors: ModelDocument['inputs']): number {
  const sizes = tensors.map(({ shape }) =>
    shape.slice(1).reduce<number>((product, size) => product * size!, 1),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
