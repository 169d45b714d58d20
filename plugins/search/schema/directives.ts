/**
 * Reads the directives of types and fields in a schema document. Pure functions; absent directives give empty
 * results.
 */
import { type ConstDirectiveNode, Kind, type ValueNode, valueFromASTUntyped } from 'graphql'

interface Annotated {
  readonly directives?: readonly ConstDirectiveNode[] | undefined
}

export const directive = (node: Annotated, name: string): ConstDirectiveNode | undefined =>
  node.directives?.find((one) => one.name.value === name)

function argument(node: Annotated, name: string, wanted: string): ValueNode | undefined {
  return directive(node, name)?.arguments?.find((one) => one.name.value === wanted)?.value
}

/** A text argument of a directive. */
export function textOf(node: Annotated, name: string, wanted: string): string | undefined {
  const value = argument(node, name, wanted)
  return value?.kind === Kind.STRING ? value.value : undefined
}

/** A list of texts; a single text counts as a list. */
export function textsOf(node: Annotated, name: string, wanted: string): readonly string[] {
  const value = argument(node, name, wanted)
  if (value === undefined) return []
  return [valueFromASTUntyped(value)].flat().filter((one): one is string => typeof one === 'string')
}

/** The rules of @context, each as two texts. */
export function rulesOf(node: Annotated): readonly { readonly when?: string; readonly find?: string }[] {
  const value = argument(node, 'context', 'rules')
  if (value === undefined) return []
  const rules = [valueFromASTUntyped(value)].flat() as readonly Record<string, unknown>[]
  return rules.map((rule) => ({
    ...(typeof rule['if'] === 'string' && { when: rule['if'] }),
    ...(typeof rule['then'] === 'string' && { find: rule['then'] }),
  }))
}
