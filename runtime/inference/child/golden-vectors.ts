/**
 * The golden vectors of a model: inputs with the outputs that its author computed. A model is used only if it
 * gives these outputs here. `null` stands for NaN, which JSON lacks.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { isList, isObject } from '#ngsi-ld/values/json.ts'

export interface GoldenVectors {
  /** Largest accepted difference: absolute, or relative to outputs above 1. */
  readonly tolerance: number
  readonly vectors: readonly { readonly input: Float32Array; readonly output: readonly number[] }[]
}

/** @throws model.invalid */
export function parseGolden(text: string, widths: { input: number; output: number }): GoldenVectors {
  let value: Json
  try {
    value = JSON.parse(text) as Json
  } catch (error) {
    throw invalid(`expected JSON: ${(error as Error).message}`)
  }
  if (!isObject(value)) throw invalid('expected an object with tolerance and vectors')
  const { tolerance, vectors, ...others } = value
  for (const name of Object.keys(others)) throw invalid(`${name}: expected one of tolerance, vectors`)
  if (typeof tolerance !== 'number' || !(tolerance > 0))
    throw invalid('tolerance: expected a number greater than 0')
  const most = limits.modelGoldenVectorsMax.value
  if (!isList(vectors) || vectors.length === 0 || vectors.length > most)
    throw invalid(`vectors: expected a list of 1 to ${most} objects with input and output`)
  return { tolerance, vectors: vectors.map((one, i) => vectorOf(one, i, widths)) }
}

function vectorOf(value: Json, i: number, widths: { input: number; output: number }) {
  if (!isObject(value)) throw invalid(`vectors[${i}]: expected an object with input and output`)
  const { input, output, ...others } = value
  for (const name of Object.keys(others))
    throw invalid(`vectors[${i}].${name}: expected one of input, output`)
  return {
    input: Float32Array.from(numbersOf(input, `vectors[${i}].input`, widths.input)),
    output: numbersOf(output, `vectors[${i}].output`, widths.output),
  }
}

function numbersOf(value: Json | undefined, path: string, width: number): number[] {
  const isNumbers = (list: readonly unknown[]): list is (number | null)[] =>
    list.every((one) => one === null || typeof one === 'number')
  if (!isList(value) || value.length !== width || !isNumbers(value))
    throw invalid(`${path}: expected a list of ${width} numbers`)
  return value.map((one) => one ?? Number.NaN)
}

/** @throws model.invalid if outputs of the model differ from the expected ones. */
export function compareGolden({ tolerance, vectors }: GoldenVectors, outputs: Float32Array): void {
  for (const [i, { output }] of vectors.entries()) {
    for (const [j, expected] of output.entries()) {
      const given = outputs[i * output.length + j]!
      const allowed = tolerance * Math.max(1, Math.abs(expected))
      const isEqual = (Number.isNaN(given) && Number.isNaN(expected)) || Math.abs(given - expected) <= allowed
      if (!isEqual)
        throw invalid(`vectors[${i}].output[${j}]: the model gives ${given}, expected ${expected}`)
    }
  }
}

const invalid = (reason: string): GatewayError => new GatewayError('model.invalid', `golden.json: ${reason}`)
