/**
 * A sorted set of pairs of a number and a rid, stored in blocks: a hundred thousand pairs need 1.6 MB. A
 * range is found in about twenty steps, and an insertion or removal moves only the pairs of its block.
 */

export interface NumberRange {
  readonly low: number
  readonly high: number
  /** True when the bound itself is excluded. */
  readonly lowOpen?: boolean | undefined
  readonly highOpen?: boolean | undefined
}

/** Pairs per block; a full block is split in two. */
const blockSize = 512

/** Numbers and rids, alternating. */
interface Block {
  readonly numbers: Float64Array
  pairs: number
}

interface Place {
  readonly block: number
  readonly pair: number
}

export function createNumberPairs() {
  const blocks: Block[] = [emptyBlock()]

  /** Position of a pair, or where it would be inserted: in the last block that begins before it. */
  const find = (value: number, rid: number): Place => {
    let first = 0
    let last = blocks.length - 1
    while (first < last) {
      const middle = (first + last + 1) >> 1
      if (isBefore(blocks[middle]!, 0, value, rid)) first = middle
      else last = middle - 1
    }
    const block = blocks[first]!
    const pair = placeIn(block, value, rid)
    return pair === block.pairs && first + 1 < blocks.length
      ? { block: first + 1, pair: 0 }
      : { block: first, pair }
  }
  const isAt = ({ block, pair }: Place, value: number, rid: number): boolean => {
    const { numbers, pairs } = blocks[block]!
    return pair < pairs && numbers[2 * pair] === value && numbers[2 * pair + 1] === rid
  }
  const startOf = ({ low, lowOpen }: NumberRange): Place => find(low, lowOpen === true ? Infinity : -Infinity)
  const endOf = ({ high, highOpen }: NumberRange): Place =>
    find(high, highOpen === true ? -Infinity : Infinity)
  const cut = (at: number): void => {
    const block = blocks[at]!
    const rest = emptyBlock()
    rest.pairs = block.pairs >> 1
    block.pairs -= rest.pairs
    rest.numbers.set(block.numbers.subarray(2 * block.pairs, 2 * (block.pairs + rest.pairs)))
    blocks.splice(at + 1, 0, rest)
  }

  return Object.freeze({
    /** Bytes of all blocks. */
    bytes: () => blocks.length * 2 * blockSize * Float64Array.BYTES_PER_ELEMENT,

    /** Adds a pair that follows all present ones. */
    append(value: number, rid: number): void {
      if (blocks.at(-1)!.pairs === blockSize) blocks.push(emptyBlock())
      put(blocks.at(-1)!, blocks.at(-1)!.pairs, value, rid)
    },

    add(value: number, rid: number): void {
      const place = find(value, rid)
      if (isAt(place, value, rid)) return
      if (blocks[place.block]!.pairs < blockSize) {
        put(blocks[place.block]!, place.pair, value, rid)
        return
      }
      cut(place.block)
      const { block, pair } = find(value, rid)
      put(blocks[block]!, pair, value, rid)
    },

    remove(value: number, rid: number): void {
      const place = find(value, rid)
      if (!isAt(place, value, rid)) return
      const block = blocks[place.block]!
      block.numbers.copyWithin(2 * place.pair, 2 * place.pair + 2, 2 * block.pairs)
      block.pairs--
      if (block.pairs === 0 && blocks.length > 1) blocks.splice(place.block, 1)
    },

    /**
     * The given rids (ascending) that have this value. Each search starts at the block of the previous rid.
     */
    having(value: number, rids: readonly number[]): readonly number[] {
      let at = rids.length === 0 ? 0 : find(value, rids[0]!).block
      return rids.filter((rid) => {
        while (at + 1 < blocks.length && isBefore(blocks[at]!, blocks[at]!.pairs - 1, value, rid)) at++
        const block = blocks[at]!
        const guess = guessIn(block, rid)
        if (isAt({ block: at, pair: guess }, value, rid)) return true
        return isAt({ block: at, pair: placeIn(block, value, rid) }, value, rid)
      })
    },

    /** Number of pairs in a range. */
    count(range: NumberRange): number {
      const [start, end] = [startOf(range), endOf(range)]
      // An empty open range ends before it begins.
      if (end.block < start.block) return 0
      let count = end.pair - start.pair
      for (let at = start.block; at < end.block; at++) count += blocks[at]!.pairs
      return Math.max(0, count)
    },

    /** Calls `visit` with each pair in a range, in order, until it returns false. */
    each(range: NumberRange, visit: (value: number, rid: number) => boolean): void {
      const [start, end] = [startOf(range), endOf(range)]
      for (let at = start.block; at <= end.block; at++) {
        const { numbers, pairs } = blocks[at]!
        const last = at === end.block ? end.pair : pairs
        for (let pair = at === start.block ? start.pair : 0; pair < last; pair++)
          if (!visit(numbers[2 * pair]!, numbers[2 * pair + 1]!)) return
      }
    },
  })
}

export type NumberPairs = ReturnType<typeof createNumberPairs>

const emptyBlock = (): Block => ({ numbers: new Float64Array(2 * blockSize), pairs: 0 })

/** Estimated position of a rid in a block, assuming evenly distributed rids, because most are consecutive. */
function guessIn({ numbers, pairs }: Block, rid: number): number {
  const first = numbers[1]!
  const span = numbers[2 * pairs - 1]! - first
  return span > 0 && rid >= first ? Math.min(pairs - 1, Math.round(((rid - first) / span) * (pairs - 1))) : 0
}

/** Position of a pair in a block, or where it would be inserted. */
function placeIn(block: Block, value: number, rid: number): number {
  let first = 0
  let end = block.pairs
  while (first < end) {
    const middle = (first + end) >> 1
    if (isBefore(block, middle, value, rid)) first = middle + 1
    else end = middle
  }
  return first
}

function isBefore({ numbers }: Block, pair: number, value: number, rid: number): boolean {
  const own = numbers[2 * pair]!
  return own < value || (own === value && numbers[2 * pair + 1]! < rid)
}

function put(block: Block, pair: number, value: number, rid: number): void {
  block.numbers.copyWithin(2 * pair + 2, 2 * pair, 2 * block.pairs)
  block.numbers[2 * pair] = value
  block.numbers[2 * pair + 1] = rid
  block.pairs++
}
