/**
 * The Dirichlet-process Gaussian state model, learned value by value: an open number of Gaussian states of
 * the standardised stream. The score of a value is the negative logarithm of its predictive density, a
 * mixture of Student-t densities by state. Old observations fade; similar states are merged. At most 24
 * states: 2 KB. Pure.
 */
import { logGamma } from '#statistics/log-gamma.ts'

const statesMax = 24
const priorMeanWeight = 0.05
const priorShape = 1.5
const fadeEvery = 64
const mergeEvery = 256
const mergeDivergence = 0.1
const weightMin = 0.05

const concentration = 1
const priorVariance = 0.02
const keepPerSample = 0.9998

export function createDirichletStates() {
  const weight = new Float64Array(statesMax)
  const mean = new Float64Array(statesMax)
  const squares = new Float64Array(statesMax)
  // Student-t parameters by state, renewed when the state changes.
  const location = new Float64Array(statesMax)
  const tailExponent = new Float64Array(statesMax)
  const inverseSpread = new Float64Array(statesMax)
  const logNorm = new Float64Array(statesMax)
  const terms = new Float64Array(statesMax)
  let used = 0
  let total = 0
  let learned = 0

  /** The predictive distribution of a state with this weight, mean and squares. */
  function predictive(n: number, centre: number, sum: number) {
    const kappa = priorMeanWeight + n
    const shape = priorShape + n / 2
    const rate = priorVariance + sum / 2 + (priorMeanWeight * n * centre ** 2) / (2 * kappa)
    const spread = (rate * (kappa + 1)) / (shape * kappa)
    return {
      location: (n * centre) / kappa,
      tailExponent: shape + 0.5,
      inverseSpread: 1 / (2 * shape * spread),
      logNorm: logGamma(shape + 0.5) - logGamma(shape) - 0.5 * Math.log(2 * Math.PI * shape * spread),
    }
  }
  const unseen = predictive(0, 0, 0)

  function renew(state: number): void {
    const now = predictive(weight[state]!, mean[state]!, squares[state]!)
    location[state] = now.location
    tailExponent[state] = now.tailExponent
    inverseSpread[state] = now.inverseSpread
    logNorm[state] = now.logNorm
  }

  const density = (state: number, value: number): number =>
    Math.exp(
      logNorm[state]! -
        tailExponent[state]! * Math.log(1 + (value - location[state]!) ** 2 * inverseSpread[state]!),
    )
  const unseenDensity = (value: number): number =>
    Math.exp(unseen.logNorm - unseen.tailExponent * Math.log(1 + value ** 2 * unseen.inverseSpread))

  /** Fills the terms of the likelihood by state; returns the term of an unseen state. */
  function weigh(value: number): number {
    const weights = total + concentration
    for (let k = 0; k < used; k++) terms[k] = (weight[k]! / weights) * density(k, value)
    return (concentration / weights) * unseenDensity(value)
  }

  /**
   * The state that takes the value, by index; opens one or recycles a light one if an unseen state is
   * likelier.
   */
  function assign(unseenTerm: number): number {
    let best = -1
    for (let k = 0; k < used; k++) if (best === -1 || terms[k]! > terms[best]!) best = k
    if (best !== -1 && terms[best]! >= unseenTerm) return best
    if (used < statesMax) return used++
    let lightest = 0
    for (let k = 1; k < used; k++) if (weight[k]! < weight[lightest]!) lightest = k
    if (weight[lightest]! >= 2) return best
    clear(lightest)
    return lightest
  }

  function clear(state: number): void {
    total -= weight[state]!
    weight[state] = 0
    mean[state] = 0
    squares[state] = 0
  }

  function learn(value: number, unseenTerm: number): void {
    const state = assign(unseenTerm)
    weight[state]!++
    total++
    const difference = value - mean[state]!
    mean[state]! += difference / weight[state]!
    squares[state]! += difference * (value - mean[state]!)
    renew(state)
    learned++
    if (learned % mergeEvery === 0) mergeSimilar()
    if (learned % fadeEvery === 0) fade()
  }

  function fade(): void {
    const factor = keepPerSample ** fadeEvery
    total = 0
    for (let k = 0; k < used; k++) {
      weight[k]! *= factor
      squares[k]! *= factor
    }
    for (let k = used - 1; k >= 0; k--) if (weight[k]! < weightMin) remove(k)
    for (let k = 0; k < used; k++) {
      total += weight[k]!
      renew(k)
    }
  }

  /** Closes a state; the last one moves to its place. */
  function remove(state: number): void {
    clear(state)
    const last = --used
    if (state === last) return
    weight[state] = weight[last]!
    mean[state] = mean[last]!
    squares[state] = squares[last]!
    total += weight[state]
    clear(last)
    renew(state)
  }

  const varianceOf = (k: number): number => (priorVariance + squares[k]! / 2) / (priorShape + weight[k]! / 2)

  /** Symmetric Kullback-Leibler divergence of two Gaussian states. */
  function divergence(a: number, b: number): number {
    const [va, vb] = [varianceOf(a), varianceOf(b)]
    const gap = (mean[a]! - mean[b]!) ** 2
    return 0.5 * (va / vb + vb / va - 2 + gap * (1 / va + 1 / vb))
  }

  function mergeSimilar(): void {
    for (let a = 0; a < used; a++)
      for (let b = used - 1; b > a; b--) if (divergence(a, b) < mergeDivergence) merge(a, b)
  }

  function merge(into: number, state: number): void {
    const sum = weight[into]! + weight[state]!
    const gap = mean[state]! - mean[into]!
    squares[into]! += squares[state]! + (gap ** 2 * weight[into]! * weight[state]!) / sum
    mean[into]! += (gap * weight[state]!) / sum
    remove(state)
    total += sum - weight[into]!
    weight[into] = sum
    renew(into)
  }

  return Object.freeze({
    /**
     * The negative logarithm of the predictive density of a standardised value; learned afterwards if
     * wanted.
     */
    take(value: number, learns: boolean): number {
      const unseenTerm = weigh(value)
      let likelihood = unseenTerm
      for (let k = 0; k < used; k++) likelihood += terms[k]!
      if (learns) learn(value, unseenTerm)
      return -Math.log(Math.max(likelihood, 1e-300))
    },
    /** The mean of the next value, standardised. */
    expected(): number {
      let sum = 0
      for (let k = 0; k < used; k++) sum += weight[k]! * mean[k]!
      return total > 0 ? sum / total : 0
    },
  })
}
