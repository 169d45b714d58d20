/**
 * With how many random cases a property is checked. `npm test` checks new ones with each run; `PROPERTY_RUNS=20 npm test -- PATH`
 * checks twenty times as many.
 */
export const runs = (count: number): number => count * Number(process.env['PROPERTY_RUNS'] ?? 1)
