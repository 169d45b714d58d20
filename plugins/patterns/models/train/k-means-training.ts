/**
 * k-means: starts by k-means++ (Arthur and Vassilvitskii, 2007), improves by Lloyd's iterations. Pure; random
 * numbers are passed in.
 */
import { squaredDistance } from '#plugins/patterns/models/distance-models.ts'

export interface Clusters {
  readonly centroids: readonly Float64Array[]
  /** Index of the centroid of each point. */
  readonly members: Int32Array
  /** Sum of squared distances to the centroids. */
  readonly inertia: number
}

const iterationsMax = 300

/** One attempt; the result is a local optimum. There are fewer clusters than `count` if points are equal. */
export function clustersOf(points: readonly Float64Array[], count: number, random: () => number): Clusters {
  let centroids = startingCentroids(points, count, random)
  let assigned = assign(points, centroids)
  for (let i = 0; i < iterationsMax; i++) {
    centroids = centresOf(points, assigned.members, centroids)
    const next = assign(points, centroids)
    const isStable = next.members.every((member, at) => member === assigned.members[at])
    assigned = next
    if (isStable) break
  }
  return { centroids, ...assigned }
}

/**
 * The Bayesian information criterion of clusters as spherical normal distributions of one variance (Pelleg
 * and Moore, X-means, 2000). Lower is better.
 */
export function clustersCriterion({ centroids, members, inertia }: Clusters): number {
  const size = centroids[0]!.length
  const counts = new Float64Array(centroids.length)
  for (const member of members) counts[member]!++
  const count = members.length
  const variance = Math.max(inertia / (size * Math.max(1, count - centroids.length)), Number.MIN_VALUE)
  const shares = counts.reduce((sum, one) => sum + (one === 0 ? 0 : one * Math.log(one / count)), 0)
  const likelihood =
    shares - (count * size * Math.log(2 * Math.PI * variance)) / 2 - (size * (count - centroids.length)) / 2
  const parameters = centroids.length * (size + 1)
  return parameters * Math.log(count) - 2 * likelihood
}

/** Each next centroid is a point, with a probability by its squared distance to the nearest one so far. */
function startingCentroids(
  points: readonly Float64Array[],
  count: number,
  random: () => number,
): readonly Float64Array[] {
  const centroids = [points[Math.floor(random() * points.length)]!]
  const distances = Float64Array.from(points, (point) => squaredDistance(point, centroids[0]!))
  while (centroids.length < count) {
    const total = distances.reduce((sum, one) => sum + one, 0)
    if (total === 0) break
    let left = random() * total
    let chosen = distances.findIndex((distance) => {
      left -= distance
      return left < 0
    })
    if (chosen === -1) chosen = distances.findLastIndex((distance) => distance > 0)
    const next = points[chosen]!
    centroids.push(next)
    points.forEach((point, i) => {
      distances[i] = Math.min(distances[i]!, squaredDistance(point, next))
    })
  }
  return centroids
}

function assign(points: readonly Float64Array[], centroids: readonly Float64Array[]) {
  let inertia = 0
  const members = Int32Array.from(points, (point) => {
    let nearest = 0
    let least = Number.POSITIVE_INFINITY
    centroids.forEach((centroid, i) => {
      const distance = squaredDistance(point, centroid)
      if (distance >= least) return
      least = distance
      nearest = i
    })
    inertia += least
    return nearest
  })
  return { members, inertia }
}

/** The mean of each cluster; a cluster without points keeps its centroid. */
function centresOf(
  points: readonly Float64Array[],
  members: Int32Array,
  centroids: readonly Float64Array[],
): readonly Float64Array[] {
  const sums = centroids.map((centroid) => new Float64Array(centroid.length))
  const counts = new Float64Array(centroids.length)
  points.forEach((point, i) => {
    const sum = sums[members[i]!]!
    counts[members[i]!]!++
    for (let j = 0; j < sum.length; j++) sum[j]! += point[j]!
  })
  return sums.map((sum, i) => (counts[i] === 0 ? centroids[i]! : sum.map((value) => value / counts[i]!)))
}
