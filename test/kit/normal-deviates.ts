/** Normal deviates of a seed (Box and Muller), for tests of statistics. */
import { createSeededRandom } from '#statistics/seeded-random.ts'

export function normalDeviates(seed: number): () => number {
  const random = createSeededRandom(seed)
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
