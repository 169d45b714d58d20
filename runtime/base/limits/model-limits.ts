/**
 * Ceilings of ONNX models and of the process that runs them; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const modelLimits = {
  /** Models of a gateway, shipped and uploaded. Beyond it: 403; further folders are not read. */
  modelsMax: limit(64, 'models'),
  /** File model.onnx. A model for a stream has at most some 100 kB. Beyond it: refused. */
  modelFileBytes: limit(5 * 1024 * 1024, 'bytes'),
  /** File model.json. Beyond it: refused. */
  modelDocumentBytes: limit(64 * 1024, 'bytes'),
  /** File golden.json. Beyond it: refused. */
  modelGoldenBytes: limit(1024 * 1024, 'bytes'),
  /** File card.md. Beyond it: refused. */
  modelCardBytes: limit(256 * 1024, 'bytes'),
  /** Uploaded folder as tar: the four files and their headers. Beyond it: 413. */
  modelUploadBytes: limit(7 * 1024 * 1024, 'bytes'),
  /** Nodes of a graph. Beyond it: refused. */
  modelNodesMax: limit(2000, 'nodes'),
  /** Inputs or outputs of a model. Beyond it: refused. */
  modelTensorsMax: limit(8, 'tensors'),
  /** Numbers of one row of all inputs, or of all outputs. Beyond it: refused. */
  modelRowNumbersMax: limit(4096, 'numbers'),
  /** Pairs of golden vectors. Beyond it: refused. */
  modelGoldenVectorsMax: limit(100, 'vectors'),
  /** Resident memory of the inference process. Beyond it: it is ended and started again. */
  inferenceBytesMax: limit(120 * 1024 * 1024, 'bytes'),
  /** Interval of comparing the memory of that process with its ceiling during a call. Beyond it: compared. */
  inferenceWatchMs: limit(50, 'ms'),
  /** A call or batch in the inference process. Beyond it: it is killed; the calls fail. */
  inferenceCallMs: limit(10_000, 'ms'),
  /** Checking and loading a model, the first time with the native library. Beyond it: killed. */
  inferenceLoadMs: limit(60_000, 'ms'),
  /** Longest pause before a start of the process, after it died repeatedly. Beyond it: the next start. */
  inferencePauseMsMax: limit(60_000, 'ms'),
  /** Calls that wait for the inference process. Beyond it: an error. */
  inferenceCallsMax: limit(2048, 'calls'),
  /** Numbers of waiting calls, 16 MB. Beyond it: an error. */
  inferenceNumbersMax: limit(4 * 1024 * 1024, 'numbers'),
  /** Input or output numbers of one batch, so that no call waits long. Beyond it: the next batch. */
  inferenceBatchNumbers: limit(256 * 1024, 'numbers'),
  /** Deaths of the process in calls of one model. Beyond it: the model is off until it changes. */
  modelStrikesMax: limit(3, 'deaths'),
  /** Model folders are compared this often. Beyond it: the next comparison. */
  modelScanMs: limit(5_000, 'ms'),
} as const satisfies Record<string, Limit>
