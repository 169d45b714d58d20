/** How well a clustering agrees with known classes. */

/**
 * The adjusted Rand index (Hubert and Arabie, 1985): 1 for the same partition, about 0 for a random one.
 * @param found and `known` have one label per item.
 */
export function adjustedRandIndex(
  found: readonly (string | number)[],
  known: readonly (string | number)[],
): number {
  const pairs = (labels: readonly unknown[]): number => {
    const counts = new Map<unknown, number>()
    for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1)
    return [...counts.values()].reduce((sum, count) => sum + (count * (count - 1)) / 2, 0)
  }
  const both = pairs(found.map((label, i) => `${label} ${known[i]!}`))
  const [ofFound, ofKnown, all] = [pairs(found), pairs(known), (found.length * (found.length - 1)) / 2]
  const expected = (ofFound * ofKnown) / all
  const most = (ofFound + ofKnown) / 2
  return most === expected ? 1 : (both - expected) / (most - expected)
}
