/**
 * A detector's state as JSON of about 2 KB: the leaves of the state in the order of a template, without
 * names. Numbers that are compared for equality keep all digits; numbers in lists have three, others seven.
 */
import type { Json } from '#contract/pipeline.ts'
import { isList } from '#ngsi-ld/values/json.ts'

/** Members that are stored as they are: values that must stay equal, and members of varying shape. */
const exact: ReadonlySet<string> = new Set([
  'value',
  'low',
  'high',
  'resting',
  'kinds',
  'running',
  'previous',
  'lastGood',
])
/** Members that follow from others begin with this, and are computed anew instead of stored. */
const derived = 'derived'
const digitsInLists = 3
const digits = 7

type State = { [name: string]: unknown }

export function packedState(state: object): Json[] {
  const leaves: Json[] = []
  pack(state as State, leaves)
  return leaves
}

function pack(state: State, leaves: Json[]): void {
  for (const [name, value] of Object.entries(state)) {
    if (name.startsWith(derived)) continue
    if (exact.has(name)) leaves.push(structuredClone(value) as Json)
    else if (Array.isArray(value)) {
      leaves.push(value.length)
      for (const item of value as number[]) leaves.push(shortened(item, digitsInLists))
    } else if (typeof value === 'object' && value !== null) pack(value as State, leaves)
    else leaves.push(typeof value === 'number' ? shortened(value, digits) : (value as Json))
  }
}

const shortened = (value: number, most: number): number =>
  Number.isInteger(value) ? value : Number(value.toPrecision(most))

/** Fills a fresh state with stored leaves. Returns false if they are not of this shape. */
export function unpack(state: object, leaves: Json | undefined): boolean {
  if (!isList(leaves)) return false
  const position = fill(state as State, leaves, 0)
  return position === leaves.length
}

function fill(state: State, leaves: readonly Json[], from: number): number {
  let at = from
  for (const [name, value] of Object.entries(state)) {
    if (name.startsWith(derived)) continue
    if (exact.has(name)) state[name] = structuredClone(leaves[at++])
    else if (Array.isArray(value)) {
      const length = Number(leaves[at++])
      state[name] = leaves.slice(at, at + length)
      at += length
    } else if (typeof value === 'object' && value !== null) at = fill(value as State, leaves, at)
    else state[name] = leaves[at++]
  }
  return at
}
