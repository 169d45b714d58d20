/**
 * The document of a registered model, as clients send it (interface of the original component, with more
 * members). Models are JSON; serialized Python objects would run their code when loaded and are rejected.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { isList, isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ModelRules } from '#plugins/patterns/groups/active-model.ts'
import { parseSpatial } from '#plugins/patterns/groups/spatial.ts'
import { type FeatureKind, featureCountOf } from '#plugins/patterns/models/features.ts'
import { isOnnx, type OnnxModel, onnxModelOf, parseOnnxName } from '#plugins/patterns/models/onnx-model.ts'
import { type PatternModel, parseModel } from '#plugins/patterns/models/pattern-model.ts'
import { parseTemporal } from '#plugins/patterns/windows/temporal.ts'

const members = ['observableProperties', 'model', 'labels', 'features', 'spatial', 'temporal', 'name']

/** @throws GatewayError naming the wrong member */
export function parsePatternModel(id: string, json: Json | undefined): ModelRules {
  if (!isObject(json)) throw badRequestData('must be a JSON object', 'body')
  const unknown = Object.keys(json).find((name) => !members.includes(name))
  if (unknown !== undefined)
    throw badRequestData(`is not known here; members are ${members.join(', ')}`, unknown)
  const size = Buffer.byteLength(JSON.stringify(json))
  if (size > limits.patternModelBytes.value)
    throw badRequestData(`must have at most ${limits.patternModelBytes.value} bytes, got ${size}`, 'body')
  const { name } = json
  if (name !== undefined && (typeof name !== 'string' || name.length > 256))
    throw badRequestData('must be a text of at most 256 characters', 'name')
  const properties = textsIn(json['observableProperties'], 'observableProperties', {
    most: limits.patternPropertiesMax.value,
    what: 'ids of observable properties',
  })
  const model = modelIn(json['model'])
  const features = featuresIn(json['features'], model)
  const expected = featureCountOf(features, properties.length)
  if (model.kind !== 'onnx' && model.featureCount !== expected)
    throw badRequestData(
      `expects ${model.featureCount} features, but ${properties.length} observable properties have ${expected} features of kind ${features}`,
      'model',
    )
  return {
    id,
    properties,
    model,
    features,
    labels: labelsIn(json['labels'], model),
    spatial: parseSpatial(json['spatial']),
    temporal: parseTemporal(json['temporal']),
  }
}

function featuresIn(json: Json | undefined, { kind }: Pick<AnyModel, 'kind'>): FeatureKind {
  if (json === undefined) return kind === 'gaussian-mixture' ? 'originals' : 'segments'
  if (json === 'originals' || json === 'segments') return json
  throw badRequestData('must be originals or segments', 'features')
}

function labelsIn(json: Json | undefined, model: AnyModel): readonly string[] {
  if (json === undefined) return []
  const labels = textsIn(json, 'labels', { most: limits.patternComponentsMax.value, what: 'labels' })
  if (model.kind !== 'nearest-neighbour' && model.kind !== 'onnx') checkLabelCount(labels, model.labelCount)
  return labels
}

export function checkLabelCount(labels: readonly string[], classes: number): void {
  if (labels.length !== classes)
    throw badRequestData(`must have ${classes} labels, one for each class of the model`, 'labels')
}

function textsIn(
  json: Json | undefined,
  field: string,
  { most, what }: { readonly most: number; readonly what: string },
): readonly string[] {
  const isTexts =
    isList(json) && json.every((one) => typeof one === 'string' && one !== '' && one.length <= 1024)
  if (!isTexts || json.length === 0 || json.length > most)
    throw badRequestData(`must be a list of 1 to ${most} ${what}`, field)
  return json as readonly string[]
}

type AnyModel = PatternModel | OnnxModel

/** A model that is given as an object, as JSON text, or as base64 text of JSON or of an ONNX file. */
function modelIn(json: Json | undefined): AnyModel {
  const given = modelJsonOf(json)
  if (Buffer.isBuffer(given)) return onnxModelOf(given)
  return given['kind'] === 'onnx' ? parseOnnxName(given) : parseModel(given)
}

/** The JSON of a model, or its ONNX file. */
function modelJsonOf(json: Json | undefined): JsonObject | Buffer {
  if (isObject(json)) return json
  if (typeof json !== 'string') throw badRequestData(expectedModel, 'model')
  const written = parsedJson(json)
  if (isObject(written)) return written
  const bytes = bytesOf(json)
  if (bytes !== undefined && isPickle(bytes)) throw pickled()
  const decoded = bytes && parsedJson(bytes.toString())
  if (isObject(decoded)) return decoded
  if (bytes !== undefined && isOnnx(bytes)) return bytes
  throw badRequestData(expectedModel, 'model')
}

const expectedModel =
  'must be a JSON object such as {"kind": "gaussian-mixture", "weights", "means", "covariances"}, or base64 text of one or of an ONNX file'

/** The rejection of a serialized Python object. */
export const pickled = (): GatewayError =>
  new GatewayError(
    'patterns.pickle',
    'model: a serialized Python object (pickle) is not accepted, because loading it runs its code. ' +
      'Convert it in Python: json.dumps({"kind": "gaussian-mixture", "weights": m.weights_.tolist(), ' +
      '"means": m.means_.tolist(), "covariances": m.covariances_.tolist()})',
  )

function bytesOf(text: string): Buffer | undefined {
  const bare = text.replace(/^data:[^,]*,/, '').replace(/\s+/g, '')
  if (bare === '' || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(bare)) return undefined
  return Buffer.from(bare, 'base64')
}

/**
 * Pickles of protocol 2 and later begin with a PROTO opcode. Those of protocols 0 and 1 begin with an opcode
 * of text and end with STOP. joblib also compresses them.
 */
export function isPickle(bytes: Buffer): boolean {
  const [first = 0, second = 0] = bytes
  if (first === 0x80 && second >= 1 && second <= 5) return true
  const isCompressed =
    (first === 0x78 && [0x01, 0x5e, 0x9c, 0xda].includes(second)) || bytes.subarray(0, 2).equals(gzip)
  if (isCompressed) return true
  return bytes.at(-1) === stop && 'c(}]'.includes(String.fromCharCode(first))
}

const gzip = Buffer.from([0x1f, 0x8b])
/** The opcode `.` that ends a pickle. */
const stop = 0x2e
