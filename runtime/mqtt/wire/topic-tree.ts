/**
 * Values by topic name, as a tree of topic levels. Unlike the filter tree, it is searched by filter. The cost
 * of a search depends on the topics found, not on all topics.
 */

/** A node of a topic that no other topic continues has no map of children: an empty one takes 200 bytes. */
interface Node<Value> {
  children: Map<string, Node<Value>> | undefined
  value: Value | undefined
}

export interface TopicTree<Value> {
  get(topic: string): Value | undefined
  set(topic: string, value: Value): void
  delete(topic: string): void
  /** Values of the topics that a filter matches, in no particular order. */
  matching(filter: string): Value[]
}

export function createTopicTree<Value>(): TopicTree<Value> {
  const root: Node<Value> = { children: undefined, value: undefined }

  function remove(node: Node<Value>, levels: readonly string[], depth: number): void {
    const level = levels[depth]
    if (level === undefined) {
      node.value = undefined
      return
    }
    const child = node.children?.get(level)
    if (child === undefined) return
    remove(child, levels, depth + 1)
    if (child.children !== undefined || child.value !== undefined) return
    node.children!.delete(level)
    if (node.children!.size === 0) node.children = undefined
  }

  return Object.freeze({
    get(topic) {
      let node: Node<Value> | undefined = root
      for (const level of topic.split('/')) node = node?.children?.get(level)
      return node?.value
    },
    set(topic, value) {
      let node = root
      for (const level of topic.split('/')) {
        node.children ??= new Map()
        let child = node.children.get(level)
        if (child === undefined) {
          child = { children: undefined, value: undefined }
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
    for (const [name, child] of node.children ?? []) {
      if (depth > 0 || !name.startsWith('$')) walk(child, levels, depth + 1, found)
    }
  } else {
    const child = node.children?.get(level)
    if (child !== undefined) walk(child, levels, depth + 1, found)
  }
}

/** A node and everything below it; from the root, without topics that begin with $ ([MQTT-4.7.2-1]). */
function all<Value>(node: Node<Value>, isRoot: boolean, found: Value[]): void {
  if (node.value !== undefined) found.push(node.value)
  for (const [name, child] of node.children ?? []) {
    if (!isRoot || !name.startsWith('$')) all(child, false, found)
  }
}
