/**
 * Who subscribed to what: topic filters as a tree of levels, each with its holders and their QoS. Matching costs
 * what the tree holds along a topic, not what it holds in all. Filters are well formed before they come here.
 */

interface Node<Holder> {
  readonly children: Map<string, Node<Holder>>
  readonly holders: Map<Holder, number>
}

export interface FilterTree<Holder> {
  /** Adds a filter of a holder, or changes its QoS. */
  add(filter: string, holder: Holder, qos: number): void
  remove(filter: string, holder: Holder): void
  /** Holders whose filters match a topic name, with the highest QoS of those filters ([MQTT-3.3.5-1]). */
  match(topic: string): Map<Holder, number>
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
    add(filter, holder, qos) {
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
      node.holders.set(holder, qos)
    },
    remove(filter, holder) {
      generation++
      remove(root, filter.split('/'), 0, holder)
    },
    match(topic) {
      const found = new Map<Holder, number>()
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
  found: Map<Holder, number>,
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

function collect<Holder>(node: Node<Holder> | undefined, found: Map<Holder, number>): void {
  if (node === undefined) return
  for (const [holder, qos] of node.holders) {
    if (qos > (found.get(holder) ?? -1)) found.set(holder, qos)
  }
}
