/**
 * Judges the order in which a subscriber is notified of each entity. States never go back. Only after the gateway that sends
 * has ended may a known sequence start again, once per end and entity: at any state already seen, and then in the same order.
 */
export interface NotifiedOrder<State> {
  /** Returns undefined when the state is in order, otherwise the state that it should not follow. */
  take(key: string, state: State): State | undefined
  /** The sender goes on from an older copy of its data: nothing seen so far counts. */
  forget(): void
}

export interface NotifiedOrderPorts<State> {
  /** Whether `state` is older than `last`. */
  readonly isBack: (last: State, state: State) => boolean
  /** How often the sender has ended so far. */
  readonly ends: () => number
}

/** What was seen of one key. */
interface Seen<State> {
  readonly states: State[]
  /** The states as text, in order of their first arrival. */
  readonly texts: string[]
  /** Index of the state that arrived last: during a repeat it is not the last index. */
  at: number
  /** The end of the sender that explains the last repeat. */
  repeatedAfter: number
}

export function createNotifiedOrder<State>({
  isBack,
  ends,
}: NotifiedOrderPorts<State>): NotifiedOrder<State> {
  const all = new Map<string, Seen<State>>()

  function append(seen: Seen<State>, state: State, text: string): void {
    seen.states.push(state)
    seen.at = seen.texts.push(text) - 1
  }

  return {
    take(key, state) {
      const seen = all.get(key) ?? { states: [], texts: [], at: 0, repeatedAfter: ends() }
      all.set(key, seen)
      const text = JSON.stringify(state)
      const next = seen.texts.indexOf(text, seen.at)
      if (next >= 0) {
        seen.at = next
        return undefined
      }
      const last = seen.states.at(-1)
      if (last === undefined || !isBack(last, state)) {
        append(seen, state, text)
        return undefined
      }
      const before = seen.states[seen.at]
      const earlier = seen.texts.indexOf(text)
      if (earlier >= 0 && seen.repeatedAfter < ends()) {
        seen.repeatedAfter = ends()
        seen.at = earlier
        return undefined
      }
      append(seen, state, text)
      return before
    },
    forget: () => all.clear(),
  }
}
