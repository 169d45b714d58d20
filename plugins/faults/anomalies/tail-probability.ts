/**
 * Turns the raw scores of a detector into probabilities: the share of earlier scores that were as large (a
 * conformal p-value), continued beyond the largest scores by a generalised Pareto tail. On exchangeable
 * scores a probability of at most q occurs with frequency q. Scores are counted in bins of 1.8 % width; old
 * ones fade. Pure, 4.5 KB.
 */
const blockSize = 32
const blockCount = 32
const binCount = blockSize * blockCount
const scoreMin = 1e-4
const scoreMax = 1e4
const binsPerUnit = binCount / Math.log(scoreMax / scoreMin)
/** Shape of the tail: somewhat heavier than exponential. */
const tailShape = 0.15
const tailShare = 0.02
const tailCountMin = 10
/** The tail is fitted from so many scores on. */
const tailFrom = 100

/** About how many of the latest scores count. */
const remembered = 5000

const centreOf = (bin: number): number => scoreMin * Math.exp((bin + 0.5) / binsPerUnit)

export function createTailProbability() {
  const memory = new ArrayBuffer(blockCount * 8 + binCount * 4)
  const blocks = new Float64Array(memory, 0, blockCount)
  const bins = new Float32Array(memory, blockCount * 8, binCount)
  let count = 0
  let sinceFading = 0

  const binOf = (score: number): number =>
    score <= scoreMin
      ? 0
      : Math.min(binCount - 1, Math.floor(Math.log(Math.min(score, scoreMax) / scoreMin) * binsPerUnit))

  /** Weight of the scores in this bin and above. */
  function weightFrom(bin: number): number {
    const block = Math.floor(bin / blockSize)
    let weight = 0
    for (let i = block + 1; i < blockCount; i++) weight += blocks[i]!
    for (let i = bin; i < (block + 1) * blockSize; i++) weight += bins[i]!
    return weight
  }

  /** The probability by the tail model; undefined if the score does not exceed the tail's start. */
  function tailOf(score: number): number | undefined {
    const wanted = Math.max(tailCountMin, tailShare * count)
    let weight = 0
    let sum = 0
    let bin = binCount
    while (weight < wanted && bin > 0) {
      bin--
      weight += bins[bin]!
      if (bins[bin]! > 0) sum += bins[bin]! * centreOf(bin)
    }
    const start = centreOf(bin)
    const meanExcess = sum / weight - start
    if (score <= start) return undefined
    const scale = Math.max(meanExcess * (1 - tailShape), start * 1e-3)
    return (weight / count) * (1 + (tailShape * (score - start)) / scale) ** (-1 / tailShape)
  }

  function probabilityOf(score: number, bin: number): number {
    const above = weightFrom(bin)
    const empirical = (1 + above) / (count + 1)
    if (count < tailFrom || above > Math.max(tailCountMin, tailShare * count)) return empirical
    return tailOf(score) ?? empirical
  }

  function learn(bin: number): void {
    bins[bin]!++
    blocks[Math.floor(bin / blockSize)]!++
    count++
    if (count > remembered && ++sinceFading >= 64) fade()
  }

  function fade(): void {
    const factor = 1 - sinceFading / remembered
    sinceFading = 0
    count = 0
    for (let block = 0; block < blockCount; block++) {
      let weight = 0
      for (let i = block * blockSize; i < (block + 1) * blockSize; i++) {
        bins[i]! *= factor
        weight += bins[i]!
      }
      blocks[block] = weight
      count += weight
    }
  }

  return Object.freeze({
    /** The probability of a score at least as large as this one; learned afterwards if wanted. */
    take(score: number, learns: boolean): number {
      const bin = binOf(score)
      const probability = Math.max(1e-12, Math.min(1, probabilityOf(score, bin)))
      if (learns) learn(bin)
      return probability
    },
    count: (): number => count,
  })
}
