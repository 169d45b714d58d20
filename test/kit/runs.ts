/**
 * Random cases of properties. `npm test` checks the same cases with each run, so that a green commit stays green;
 * `PROPERTY_RUNS=20 npm test -- PATH` checks new ones, twenty times as many.
 */
import fc from 'fast-check'

const factor = process.env['PROPERTY_RUNS']

if (factor === undefined) fc.configureGlobal({ seed: 20_260_101 })

/** The number of random cases of a property. */
export const runs = (count: number): number => count * Number(factor ?? 1)
