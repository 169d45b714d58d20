/**
 * Finds the name that an operator probably meant: the candidate with the smallest edit distance, if that is
 * small for the length; otherwise a candidate that starts or ends with the given name. It ignores case, dots,
 * dashes and underscores, so that `linger_ms` matches `lingerMs`.
 */

/** @returns the nearest candidate, the first of several equally near ones; undefined if none is near. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const wanted = bare(name)
  let best: string | undefined
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(wanted, bare(candidate))
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  if (best !== undefined || wanted.length < 3) return best
  const within = (candidate: string): boolean => candidate.startsWith(wanted) || candidate.endsWith(wanted)
  return candidates.find((candidate) => within(bare(candidate)))
}

function bare(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .slice(0, 64)
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let cost = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    before = above
    above = row
  }
  return above[b.length]!
}
