/**
 * Calls that have a better place in this house. Each ban names what to use instead and the files where the call
 * is at home. Only the product is read; tests and scripts may use what they need.
 */
import { isNode, isProduct, isTest, isTypeScript, lineAt, type Node, type TreeFile, walk } from './tree.ts'

interface Ban {
  readonly what: string
  readonly instead: string
  readonly atHome: RegExp
  matches(node: Node, ancestors: readonly Node[]): boolean
}

const nameOf = (node: unknown): string | undefined =>
  isNode(node) && typeof node['name'] === 'string' ? node['name'] : undefined

const isMember = (node: Node, object: string, property?: string): boolean =>
  node.type === 'MemberExpression' &&
  nameOf(node['object']) === object &&
  (property === undefined || nameOf(node['property']) === property)

/** A call of `object.property()`. Handing the function on, as a port, is no call. */
const isCallOn = (node: Node, object: string, property: string): boolean =>
  node.type === 'CallExpression' && isNode(node['callee']) && isMember(node['callee'], object, property)

const isCallOf = (node: Node, name: string): boolean =>
  node.type === 'CallExpression' && nameOf(node['callee']) === name

/** True inside a function that has a parameter of this name, which then is not the global one. */
const isParameter = (name: string, ancestors: readonly Node[]): boolean =>
  ancestors.some(({ params }) => Array.isArray(params) && params.some((one: unknown) => nameOf(one) === name))

const nowhere = /^$/

const bans: readonly Ban[] = [
  {
    what: 'new Error',
    instead: 'new GatewayError(code, message, details) of #base/errors.ts',
    atHome: nowhere,
    matches: (node) =>
      node.type === 'NewExpression' && /^(Type|Range|Syntax)?Error$/.test(nameOf(node['callee']) ?? ''),
  },
  {
    what: 'Date.now',
    instead: 'a Clock of #base/time/clock.ts as a port',
    atHome: /^runtime\/base\/time\/clock\.ts$/,
    matches: (node) => isCallOn(node, 'Date', 'now'),
  },
  {
    what: 'Math.random',
    instead: 'randomness as a port, or node:crypto for secrets',
    atHome: nowhere,
    matches: (node) => isCallOn(node, 'Math', 'random'),
  },
  {
    what: 'fetch',
    instead: 'node:http in what runs for long (the global fetch costs 16 MB at first use)',
    atHome: /^runtime\/cli\//,
    matches: (node, ancestors) => isCallOf(node, 'fetch') && !isParameter('fetch', ancestors),
  },
  {
    what: 'console',
    instead: 'the Log of #base/log.ts; commands write to process.stdout',
    atHome: nowhere,
    matches: (node) => isMember(node, 'console'),
  },
  {
    what: '.prepare',
    instead: 'a named statement of the store, or of statements.ts in a plugin',
    atHome: /^runtime\/store\/|^plugins\/(?:[^/]+\/)+(?:[a-z-]+-)?statements\.ts$/,
    matches: (node) =>
      node.type === 'CallExpression' &&
      isNode(node['callee']) &&
      nameOf(node['callee']['property']) === 'prepare',
  },
]

export function bannedCalls(files: readonly TreeFile[]): string[] {
  return files.filter(isProduct).flatMap((one) => {
    const complaints: string[] = []
    walk(one, (node, ancestors) => {
      for (const ban of bans) {
        if (ban.atHome.test(one.path) || !ban.matches(node, ancestors)) continue
        complaints.push(`${one.path}:${lineAt(one, node.start)} ${ban.what}: use ${ban.instead}`)
      }
    })
    return complaints
  })
}

/** Tests singled out, switched off or only announced. What needs a peer says so by `describePeer`. */
export function switchedOffTests(files: readonly TreeFile[]): string[] {
  const tests = files.filter((one) => isTypeScript(one) && isTest(one) && one.path !== 'test/kit/peers.ts')
  return tests.flatMap((one) => {
    const complaints: string[] = []
    walk(one, (node) => {
      const runner = node.type === 'MemberExpression' ? nameOf(node['object']) : undefined
      const property = nameOf(node['property']) ?? ''
      if (
        !/^(it|test|describe)$/.test(runner ?? '') ||
        !/^(only|skip|skipIf|runIf|todo|fails)$/.test(property)
      )
        return
      complaints.push(`${one.path}:${lineAt(one, node.start)} ${runner}.${property}`)
    })
    return complaints
  })
}

/** Plans belong in the tracker, limits into a sentence. */
export function openEnds(files: readonly TreeFile[]): string[] {
  const words = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`)
  return files
    .filter(isTypeScript)
    .flatMap(({ path, text }) =>
      text
        .split('\n')
        .flatMap((line, index) => (words.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
    )
}
