/**
 * Subscriptions as a tree of topic filter levels, each with its holders and their grants. The cost of a match
 * depends on the filters along the topic, not on all filters. Callers validate filters first.
 */
import { asQos, type Qos } from './wire.ts'

/** The grant of one subscription, or of several subscriptions of one holder that match the same topic. */
export interface Grant {
  readonly qos: Qos
  /** The QoS for messages that the holder published itself; undefined with No Local. */
  readonly ownQos: Qos | undefined
  /** RETAIN is forwarded as the publisher set it (Retain As Published). */
  readonly keepsRetain: boolean
  /** Subscription identifiers of MQTT 5. */
  readonly subscriptions: readonly number[]
}

/** A subscription without the options of MQTT 5. */
export const plainGrant = (qos: Qos): Grant => plainGrants[qos]

const plain = (qos: Qos): Grant => Object.freeze({ qos, ownQos: qos, keepsRetain: false, subscriptions: [] })
const plainGrants = [plain(0), plain(1), plain(2)] as const

interface Node<Holder> {
  readonly children: Map<string, Node<Holder>>
  readonly holders: Map<Holder, Grant>
}

export interface FilterTree<Holder> {
  /** Adds a filter of a holder, or changes its grant. */
  add(filter: string, holder: Holder, grant: Grant): void
  remove(filter: string, holder: Holder): void
  /**
   * Holders whose filters match a topic name, each with one grant: the highest QoS of those filters
   * ([MQTT-3.3.5-1]) and all their subscription identifiers ([MQTT-3.3.4-4]).
   */
  match(topic: string): Map<Holder, Grant>
  /** Changes whenever a match may have changed. */
  generation(): number
}

export function createFilterTree<Holder>(): FilterTree<Holder> {
  const root = createNode<Holder>()
  let generation = 0

  function remove(node: Node<Holder>, levels: readonly string[], depth: number, holder: Holder): void {
    const level = levels[depth]
    if (level === undefined) {
      node.holders.delete(holder)
      return
    }
    const child = node.children.get(level)
    if (child === undefined) return
    remove(child, levels, depth + 1, holder)
    if (child.children.size === 0 && child.holders.size === 0) node.children.delete(level)
  }

  return Object.freeze({
    add(filter, holder, grant) {
      generation++
      let node = root
      for (const level of filter.split('/')) {
        let child = node.children.get(level)
        if (child === undefined) {
          child = createNode()
          node.children.set(level, child)
        }
        node = child
      }
      node.holders.set(holder, grant)
    },
    remove(filter, holder) {
      generation++
      remove(root, filter.split('/'), 0, holder)
    },
    match(topic) {
      const found = new Map<Holder, Grant>()
      walk(root, topic.split('/'), 0, found)
      return found
    },
    generation: () => generation,
  } satisfies FilterTree<Holder>)
}

const createNode = <Holder>(): Node<Holder> => ({ children: new Map(), holders: new Map() })

function walk<Holder>(
  node: Node<Holder>,
  levels: readonly string[],
  depth: number,
  found: Map<Holder, Grant>,
): void {
  const level = levels[depth]
  // A wildcard at the first level matches no topic that begins with $ ([MQTT-4.7.2-1]).
  const wild = depth > 0 || !level!.startsWith('$')
  if (wild) collect(node.children.get('#'), found)
  if (level === undefined) {
    collect(node, found)
    return
  }
  const single = wild ? node.children.get('+') : undefined
  if (single !== undefined) walk(single, levels, depth + 1, found)
  const exact = node.children.get(level)
  if (exact !== undefined) walk(exact, levels, depth + 1, found)
}

function collect<Holder>(node: Node<Holder> | undefined, found: Map<Holder, Grant>): void {
  if (node === undefined) return
  for (const [holder, grant] of node.holders) {
    const other = found.get(holder)
    found.set(holder, other === undefined ? grant : united(other, grant))
  }
}

function united(a: Grant, b: Grant): Grant {
  return {
    qos: highest(a.qos, b.qos),
    ownQos:
      a.ownQos === undefined || b.ownQos === undefined ? (a.ownQos ?? b.ownQos) : highest(a.ownQos, b.ownQos),
    keepsRetain: a.keepsRetain || b.keepsRetain,
    subscriptions: [...new Set([...a.subscriptions, ...b.subscriptions])],
  }
}

const highest = (a: Qos, b: Qos): Qos => asQos(Math.max(a, b))
