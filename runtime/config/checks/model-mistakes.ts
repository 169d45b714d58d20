/**
 * Parses `model.json` and reports all its mistakes, each with path, expected value and nearest key.
 */
import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { type Keys, type Mistake, mistakeAt, mistakeLine } from '#config/schema/mistakes.ts'
import { rowNumbers } from '#config/schema/model-rows.ts'
import { type ModelDocument, modelSchema } from '#config/schema/model-schema.ts'
import { valueMistakes, wrongPlaces } from './value-mistakes.ts'

export type ParsedModel =
  | { readonly document: ModelDocument; readonly mistakes?: undefined }
  | { readonly mistakes: readonly string[] }

/**
 * @param folder name of the folder, which must be that of the model; undefined if it does not matter yet.
 * @param source where the text comes from, for the mistakes.
 */
export function parseModelDocument(
  text: string,
  { folder, source }: { readonly folder: string | undefined; readonly source: string },
): ParsedModel {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { mistakes: [`expected JSON: ${(error as Error).message} (${source})`] }
  }
  const parsed = v.safeParse(modelSchema, value)
  if (!parsed.success) {
    const places = wrongPlaces(parsed.issues, modelSchema)
    return { mistakes: valueMistakes(places, { value, sourceOf: () => source }).map(mistakeLine) }
  }
  const mistakes = relationMistakes(parsed.output, folder, source)
  return mistakes.length === 0 ? { document: parsed.output } : { mistakes: mistakes.map(mistakeLine) }
}

function relationMistakes(document: ModelDocument, folder: string | undefined, source: string): Mistake[] {
  const { name, inputs, outputs, scaler, trainedRange, assign } = document
  const width = rowNumbers(inputs)
  const mistakes: Mistake[] = []
  const wrong = (keys: Keys, expected: string): void => {
    mistakes.push(mistakeAt(document, keys, { expected, source }))
  }
  if (folder !== undefined && name !== folder) wrong(['name'], `the name of the folder, ${folder}`)
  const most = limits.modelRowNumbersMax.value
  for (const [key, tensors] of [
    ['inputs', inputs],
    ['outputs', outputs],
  ] as const) {
    if (rowNumbers(tensors) > most) wrong([key], `at most ${most} numbers in a row of all tensors`)
    if (new Set(tensors.map((one) => one.name)).size < tensors.length) wrong([key], 'names that differ')
  }
  const isWidth = (length: number): boolean => length === 1 || length === width
  const words = `one entry, or one for each of the ${width} numbers of an input row`
  if (scaler !== undefined && !isWidth(scaler.mean.length)) wrong(['scaler', 'mean'], words)
  if (scaler !== undefined && !isWidth(scaler.deviation.length)) wrong(['scaler', 'deviation'], words)
  if (trainedRange !== undefined && !isWidth(trainedRange.length)) wrong(['trainedRange'], words)
  if (assign !== undefined && Object.values(assign).filter((one) => one !== undefined).length !== 1)
    wrong(['assign'], 'exactly one of property, stream and q')
  return mistakes
}
