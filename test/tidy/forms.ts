/**
 * Forms that hide what a call passes or what a line assigns. Each has a plain form: members one by one, named
 * arguments, one `let` per variable, a parameter or a class in place of `this`.
 */
import { isNode, isTypeScript, lineAt, type Node, type TreeFile, walk } from './tree.ts'

/** One complaint per place in any source or test file. */
export function hidingForms(files: readonly TreeFile[]): string[] {
  return files.filter(isTypeScript).flatMap((one) => {
    const complaints: string[] = []
    walk(one, (node, ancestors) => {
      const form = formOf(node, ancestors)
      if (form !== undefined) complaints.push(`${one.path}:${lineAt(one, node.start)} ${form}`)
    })
    return complaints
  })
}

function formOf(node: Node, ancestors: readonly Node[]): string | undefined {
  if (isSpreadLiteral(node, ancestors.at(-1))) return 'spreads an object that it writes: write its members'
  if (isTupleRest(node)) return 'has a rest parameter of a tuple: name the parameters, or take one object'
  if (isTupleLet(node, ancestors.at(-1)))
    return 'assigns several variables by one let: write one let for each'
  if (node.type === 'ThisExpression' && !ancestors.some(({ type }) => type === 'ClassBody'))
    return 'uses this outside a class: take the record as a parameter'
  return undefined
}

const isOfType = (value: unknown, type: string): value is Node => isNode(value) && value.type === type

/** `{ ...{ a, b } }` */
const isSpreadLiteral = ({ type, argument }: Node, parent: Node | undefined): boolean =>
  type === 'SpreadElement' && isOfType(parent, 'ObjectExpression') && isOfType(argument, 'ObjectExpression')

/** `(...[a, b]: T)` and `(...all: [A, B])`; a list of tuples is no tuple. */
function isTupleRest({ type, argument, typeAnnotation }: Node): boolean {
  if (type !== 'RestElement') return false
  if (isOfType(argument, 'ArrayPattern')) return true
  const written = isNode(typeAnnotation) ? typeAnnotation['typeAnnotation'] : undefined
  return isOfType(written, 'TSTupleType')
}

/** `let [a, b] = [0, 1]` */
const isTupleLet = ({ type, id, init }: Node, parent: Node | undefined): boolean =>
  type === 'VariableDeclarator' &&
  parent?.['kind'] === 'let' &&
  isOfType(id, 'ArrayPattern') &&
  isOfType(init, 'ArrayExpression')
