/**
 * Values by topic name, as a tree of topic levels. Unlike the filter tree, it is searched by filter. The cost
 * of a search depends on the topics found, not on all topics.
 */

interface Node<Value> {
  readonly children: Map<string, Node<Value>>
  value?: Value
}

export interface TopicTree<Value> {
  get(topic: string): Value | undefined
  set(topic: string, value: Value): void
  delete(topic: string): void
  /** Values of the topics that a filter matches, in no particular order. */
  matching(filter: string): Value[]
}

export function createTopicTree<Value>(): TopicTree<Value> {
  const root: Node<Value> = { children: new Map() }

  function remove(node: Node<Value>, levels: readonly string[], depth: number): void {
    const level = levels[depth]
    if (level === undefined) {
      delete node.value
      return
    }
    const child = node.children.get(level)
    if (child === undefined) return
    remove(child, levels, depth + 1)
    if (child.children.size === 0 && child.value === undefined) node.children.delete(level)
  }

  return Object.freeze({
    get(topic) {
      let node: Node<Value> | undefined = root
      for (const level of topic.split('/')) node = node?.children.get(level)
      return node?.value
    },
    set(topic, value) {
      let node = root
      for (const level of topic.split('/')) {
        let child = node.children.get(level)
        if (child === undefined) {
          child = { children: new Map() }
          node.children.set(level, child)
        }
        node = child
      }
      node.value = value
    },
    delete: (topic) => remove(root, topic.split('/'), 0),
    matching(filter) {
      const found: Value[] = []
      walk(root, filter.split('/'), 0, found)
      return found
    },
  } satisfies TopicTree<Value>)
}

function walk<Value>(node: Node<Value>, levels: readonly string[], depth: number, found: Value[]): void {
  const level = levels[depth]
  if (level === undefined) {
    if (node.value !== undefined) found.push(node.value)
  } else if (level === '#') {
    all(node, depth === 0, found)
  } else if (level === '+') {
    for (const [name, child] of node.children) {
      if (depth > 0 || !name.startsWith('$')) walk(child, levels, depth + 1, found)
    }
  } else {
    const child = node.children.get(level)
    if (child !== undefined) walk(child, levels, depth + 1, found)
  }
}

/** A node and everything below it; from the root, without topics that begin with $ ([MQTT-4.7.2-1]). */
function all<Value>(node: Node<Value>, isRoot: boolean, found: Value[]): void {
  if (node.value !== undefined) found.push(node.value)
  for (const [name, child] of node.children) {
    if (!isRoot || !name.startsWith('$')) all(child, false, found)
  }
}
