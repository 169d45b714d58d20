/**
 * Which room may know which, and which room owns which library. This is the truth about the arrows of the
 * house; docs/architecture.md explains them. Imports of tests are free, except that none goes up by `../`.
 */
import { dirname, join } from 'node:path/posix'
import { isNode, isProduct, type Node, programOf, type TreeFile, walk } from './tree.ts'

/** Rooms by shelf: a room imports only from lower shelves; neighbours meet in the gateway. */
const shelves: Readonly<Record<string, number>> = {
  base: 0,
  'ngsi-ld': 1,
  config: 1,
  statistics: 1,
  contract: 2,
  client: 3,
  store: 3,
  inference: 3,
  broker: 4,
  intake: 5,
  federation: 5,
  http: 6,
  mqtt: 6,
  delivery: 6,
  bridges: 6,
  uplink: 7,
  downward: 7,
  host: 7,
  interfaces: 7,
  gateway: 8,
  cli: 9,
  main: 10,
}

/** Folders of a room from the lowest up: files of a folder import from their own and from lower ones. What stands beside the folders imports from all. */
const innerShelves: Readonly<Record<string, readonly string[]>> = {
  broker: [
    'commit',
    'state',
    'contexts',
    'subscriptions',
    'entities',
    'history',
    'sources',
    'changes',
    'upkeep',
    'tenant',
  ],
  store: ['file', 'chunks', 'tables', 'entities', 'history', 'query', 'writer', 'backup', 'plugins'],
  'ngsi-ld': [
    'values',
    'context',
    'geo',
    'entity',
    'representation',
    'query',
    'history',
    'subscription',
    'federation',
  ],
  http: [
    'request',
    'listener',
    'entities',
    'history',
    'entity-maps',
    'snapshots',
    'distribution',
    'subscriptions',
    'contexts',
    'openapi',
    'operator',
  ],
  uplink: ['connection', 'steps', 'centre', 'progress', 'backfill', 'reconcile', 'live'],
  base: ['register', 'limits', 'time', 'process', 'load', 'pages'],
  mqtt: ['wire', 'link', 'sessions', 'publish', 'clients', 'notify', 'bridge-in'],
  'plugins/orchestrator': [
    'cache',
    'clients',
    'context',
    'subscriptions',
    'notifications',
    'failures',
    'amqp',
    'proxy',
  ],
  'plugins/patterns': ['models', 'windows', 'events', 'labelling', 'groups', 'registrations', 'training'],
  'plugins/quality': ['measures', 'entities', 'streams', 'sources', 'operator', 'brokers'],
  'plugins/virtual-sensors': [
    'requests',
    'entities',
    'sources',
    'families',
    'candidates',
    'training',
    'state',
    'brokers',
    'lifecycle',
  ],
  'plugins/indexing': ['entries', 'query', 'brokers'],
  'plugins/faults': [
    'anomalies',
    'rules',
    'models',
    'detection',
    'entities',
    'streams',
    'writes',
    'replacements',
    'operator',
    'brokers',
  ],
  'plugins/search': ['schema', 'reads', 'transports'],
  client: ['routes', 'streams', 'requests', 'subscriptions'],
  cli: ['terminal', 'settings', 'gateway', 'data', 'demo'],
  config: ['schema', 'checks', 'load'],
  inference: ['onnx', 'child', 'folders', 'calls'],
}

/** The room of each library; of `ws` one serves and the other opens connections. A library without a line here may be used nowhere in the product. */
const libraryRooms: Readonly<Record<string, string | readonly string[]>> = {
  amqplib: 'delivery',
  '@redis/client': 'host',
  'better-sqlite3': 'store',
  'mqtt-packet': 'mqtt',
  hono: 'http',
  '@hono/node-server': 'http',
  mqtt: 'mqtt',
  ws: ['http', 'downward'],
  valibot: 'config',
  yaml: 'config',
  cborg: 'bridges',
  re2js: 'ngsi-ld',
  'node-cron': 'base',
  graphql: 'plugins/search',
  'graphql-http': 'plugins/search',
  'graphql-sse': 'plugins/search',
  'graphql-ws': 'plugins/search',
  dataloader: 'plugins/search',
  'onnxruntime-node': 'inference',
  esbuild: 'base',
}

interface Import {
  readonly from: string
  readonly to: string
  readonly typeOnly: boolean
}

/** The room of a path: `runtime/store/x.ts` is in store, `runtime/gateway.ts` is gateway. */
function roomOf(path: string): string {
  if (path.startsWith('firmware-bridges/')) return 'bridges'
  // Each plugin is a room of its own; only the registry knows them all.
  const [, plugin] = /^plugins\/([^/]+)\//.exec(path) ?? []
  if (plugin !== undefined) return `plugins/${plugin}`
  if (path.startsWith('plugins/')) return 'plugins'
  const [, second = ''] = path.split('/')
  return second.replace(/\.ts$/, '')
}

const imports = new WeakMap<TreeFile, Import[]>()

/** Everything a file imports, re-exports, or names by a URL relative to itself. */
function importsOf(one: TreeFile): Import[] {
  const known = imports.get(one)
  if (known !== undefined) return known
  const found: Import[] = []
  imports.set(one, found)
  walk(one, (node) => {
    const source = sourceOf(node)
    if (source === undefined) return
    const typeOnly = node['importKind'] === 'type' || node['exportKind'] === 'type'
    found.push({ from: one.path, to: source, typeOnly })
  })
  return found
}

function sourceOf(node: Node): string | undefined {
  if (/^(Import|ExportNamed|ExportAll)Declaration$|^ImportExpression$/.test(node.type))
    return textOf(node['source'])
  if (node.type !== 'NewExpression' || nameOf(node['callee']) !== 'URL') return undefined
  const [first, second] = node['arguments'] as unknown[]
  const path = textOf(first)
  return second !== undefined && path?.endsWith('.ts') ? path : undefined
}

const textOf = (node: unknown): string | undefined =>
  isNode(node) && typeof node['value'] === 'string' ? node['value'] : undefined
const nameOf = (node: unknown): unknown => (isNode(node) ? node['name'] : undefined)

/** Path of the imported file, undefined for a library or a module of Node. */
function targetOf({ from, to }: Import): string | undefined {
  if (to === '#contract') return 'runtime/contract/index.ts'
  if (to === '#gateway') return 'runtime/gateway.ts'
  if (to.startsWith('#bridges/')) return to.replace('#bridges', 'firmware-bridges')
  if (to.startsWith('#plugins/')) return to.slice(1)
  if (to.startsWith('#test/')) return to.slice(1)
  if (to.startsWith('#')) return `runtime/${to.slice(1)}`
  return to.startsWith('.') ? join(dirname(from), to) : undefined
}

const productImports = (files: readonly TreeFile[]): Import[] => files.filter(isProduct).flatMap(importsOf)

export function forbiddenArrows(files: readonly TreeFile[]): string[] {
  return productImports(files).flatMap((one) => {
    const target = targetOf(one)
    if (target === undefined || !target.endsWith('.ts') || isAllowed(one, target)) return []
    return [`${one.from} imports ${one.to}: ${shelfOf(one.from)} may not know ${shelfOf(target)}`]
  })
}

/** The room of a path with its folder, as complaints name it. */
const shelfOf = (path: string): string => [roomOf(path), folderOf(path) ?? []].flat().join('/')

/** The folder of a path within its room; undefined for a file that stands beside the folders. */
function folderOf(path: string): string | undefined {
  const [, folder, file] = path
    .slice(path.indexOf(roomOf(path)))
    .split('/')
    .slice(roomOf(path).split('/').length - 1)
  return file === undefined ? undefined : folder
}

function isAllowedInside(room: string, from: string, target: string): boolean {
  const order = innerShelves[room]
  const [upper, lower] = [folderOf(from), folderOf(target)]
  if (order === undefined || upper === undefined || upper === lower) return true
  return lower !== undefined && order.indexOf(lower) < order.indexOf(upper)
}

function isAllowed(one: Import, target: string): boolean {
  const [from, to] = [roomOf(one.from), roomOf(target)]
  if (from === to) return isAllowedInside(from, one.from, target)
  if (from === 'bridges') return to === 'contract'
  if (from === 'plugins') return to.startsWith('plugins/') || to === 'contract'
  if (from.startsWith('plugins/')) return ['client', 'contract', 'ngsi-ld', 'statistics', 'base'].includes(to)
  if (to.startsWith('plugins')) return to === 'plugins' && from === 'gateway'
  if (from === 'ngsi-ld' && target === 'runtime/contract/pipeline.ts') return one.typeOnly
  const [lower, upper] = [shelves[to], shelves[from]]
  return lower !== undefined && upper !== undefined && lower < upper
}

/** Inside a folder by `./`, between folders by `#`; `../` does not exist. */
export function crookedImports(files: readonly TreeFile[]): string[] {
  const everywhere = files.filter(({ path }) => path.endsWith('.ts')).flatMap(importsOf)
  return everywhere.flatMap((one) => {
    if (one.to.startsWith('../')) return [`${one.from} imports ${one.to}: use its # alias`]
    const target = one.to.startsWith('#') ? targetOf(one) : undefined
    const inside =
      target !== undefined && one.from.startsWith('runtime/') && dirname(one.from) === dirname(target)
    return inside && !one.from.endsWith('.test.ts')
      ? [`${one.from} imports ${one.to}: use ./ inside a folder`]
      : []
  })
}

export function strayLibraries(files: readonly TreeFile[]): string[] {
  return productImports(files).flatMap(({ from, to }) => {
    if (/^[.#]|^node:/.test(to)) return []
    const library = to.startsWith('@') ? to.split('/').slice(0, 2).join('/') : to.split('/')[0]!
    const rooms = [libraryRooms[library] ?? []].flat()
    if (rooms.includes(roomOf(from))) return []
    const owners = rooms.length === 0 ? 'no room owns it' : `it belongs to ${rooms.join(' and ')}`
    return [`${from} imports ${to}: ${owners}`]
  })
}

/** One complaint per file that can reach itself by imports, of types too. */
export function cycles(files: readonly TreeFile[]): string[] {
  const graph = new Map<string, string[]>()
  for (const one of productImports(files)) {
    const target = targetOf(one)
    if (target === undefined) continue
    graph.set(one.from, [...(graph.get(one.from) ?? []), target])
  }
  return [...graph.keys()]
    .filter((path) => reaches(graph, path, path))
    .map((path) => `${path} imports itself`)
}

function reaches(graph: ReadonlyMap<string, readonly string[]>, from: string, goal: string): boolean {
  const seen = new Set<string>()
  const waiting = [...(graph.get(from) ?? [])]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (path === goal) return true
    if (!seen.has(path)) waiting.push(...(graph.get(path) ?? []))
    seen.add(path)
  }
  return false
}

/** The contract is the only barrel: elsewhere a file that re-exports hides where a thing lives. */
export function barrels(files: readonly TreeFile[]): string[] {
  return files
    .filter((one) => isProduct(one) && one.path !== 'runtime/contract/index.ts')
    .filter((one) => (programOf(one)['body'] as Node[]).some(isReexport))
    .map(({ path }) => `${path} re-exports: import from where the thing is made`)
}

const isReexport = (node: Node): boolean => /^Export/.test(node.type) && isNode(node['source'])
