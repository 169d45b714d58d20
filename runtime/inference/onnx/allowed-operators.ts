/**
 * The operators that a model may use; `child/loaded-model.ts` rejects a model with any other one. Once the
 * shapes of its tensors are known, the time of each operator has an upper bound. Excluded are loops and
 * branches (If, Loop, Scan), random numbers, text, and operators that load or call anything. Those that
 * enlarge a tensor without need (Expand, Tile, Resize) are excluded too.
 */

const neural = [
  'Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast Clip Concat Constant Conv Div Equal Erf Exp Flatten',
  'Gather Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GRU Identity IsNaN LayerNormalization',
  'LeakyRelu Less LessOrEqual Log LogSoftmax LSTM MatMul Max MaxPool Min Mul Neg Not Or Pow ReduceLogSumExp',
  'ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare Relu Reshape RNN Sigmoid Slice Softmax Softplus Split Sqrt Squeeze',
  'Sub Sum Tanh Transpose Unsqueeze Where',
]
const classical = [
  'Imputer LinearClassifier LinearRegressor Normalizer Scaler SVMRegressor',
  'TreeEnsembleClassifier TreeEnsembleRegressor',
]

const namesIn = (lines: readonly string[]): ReadonlySet<string> =>
  new Set(lines.flatMap((line) => line.split(' ')))

/** Names of operators by domain. */
export const allowedOperators: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['', namesIn(neural)],
  ['ai.onnx', namesIn(neural)],
  ['ai.onnx.ml', namesIn(classical)],
])
