/** The label of a window. */
export interface WindowPattern {
  readonly start: number
  readonly end: number
  readonly label: string
  /** 0 to 1. */
  readonly confidence: number
}

/** A window whose label comes later, from an ONNX model. */
export interface UnlabelledWindow {
  readonly start: number
  readonly end: number
  readonly features: Float64Array
}
