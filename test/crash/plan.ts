/**
 * Which kill comes when. A named kill arms one failpoint with the passage at which it strikes, so that it hits in
 * the middle of traffic; others strike at an instant of traffic, or of starting.
 */
import type { Failpoint } from '#base/register/failpoints.ts'

export type Kill =
  | { readonly kind: 'failpoint'; readonly name: Failpoint; readonly passage: number }
  /** While it starts: before it listens, replay and migration included. */
  | { readonly kind: 'start'; readonly name: Failpoint; readonly passage: number }
  | { readonly kind: 'instant'; readonly afterMs: number }
  | { readonly kind: 'start-instant'; readonly afterMs: number }

export const labelOf = (kill: Kill): string => {
  if (kill.kind === 'failpoint' || kill.kind === 'start') return kill.name
  return kill.kind === 'instant' ? 'any instant' : 'any instant of the start'
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function createDice(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Passages at which each failpoint strikes in traffic: from and to. Rare places strike at once. */
const inTraffic: Partial<Record<Failpoint, readonly [from: number, to: number]>> = {
  'door:before-send': [8, 60],
  'writer:before-commit': [8, 60],
  'writer:after-commit': [8, 60],
  'writer:after-checkpoint': [1, 1],
  'writer:mid-fold': [2, 5],
  'door:before-publish': [8, 60],
  'door:before-answer': [8, 60],
  'door:mid-answer': [20, 120],
  'delivery:after-send': [60, 400],
  'delivery:before-settle': [1, 2],
  'mqtt:after-puback': [20, 120],
  'http:internal': [180, 320],
}

/** `count` kills: every failpoint of traffic and of replay in turn, and between them some at any instant. */
export function planKills(count: number, dice: () => number): Kill[] {
  const named = Object.keys(inTraffic) as Failpoint[]
  const between = (from: number, to: number): number => from + Math.floor(dice() * (to - from + 1))
  const makers: (() => Kill)[] = [
    ...named.map((name) => (): Kill => {
      const [from, to] = inTraffic[name]!
      return { kind: 'failpoint', name, passage: between(from, to) }
    }),
    () => ({ kind: 'start', name: 'start:mid-replay', passage: 1 }),
    () => ({ kind: 'instant', afterMs: between(50, 2000) }),
    () => ({ kind: 'start-instant', afterMs: between(50, 900) }),
    () => ({ kind: 'instant', afterMs: between(50, 2000) }),
  ]
  const kills: Kill[] = []
  while (kills.length < count) {
    const round = shuffled(makers, dice).map((make) => make())
    kills.push(...round.slice(0, count - kills.length))
  }
  return kills
}

function shuffled<T>(items: readonly T[], dice: () => number): T[] {
  return items
    .map((item) => ({ item, weight: dice() }))
    .sort((a, b) => a.weight - b.weight)
    .map(({ item }) => item)
}

/** Values are written back a minute after they came, so this kill needs a life of its own. */
export const writebackKill: Kill = { kind: 'failpoint', name: 'writeback:after-write', passage: 1 }
