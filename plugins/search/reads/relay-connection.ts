/**
 * A page with cursors: edges, nodes, page info and the total number of matches. Each is read only when
 * requested.
 */
import { GraphQLError } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { EntityJson } from '#plugins/search/schema/entity-values.ts'
import type { QueryCriteria } from '#plugins/search/schema/query-criteria.ts'
import type { Selection } from './criteria-selection.ts'
import type { RankingParameters } from './reads.ts'

export interface ConnectionArguments {
  readonly first?: number | null
  readonly after?: string | null
}

/** Fields of a connection, each resolved on request. */
export function connection(
  selection: Selection,
  criteria: QueryCriteria,
  { first, after }: ConnectionArguments,
  ranking: RankingParameters | undefined,
): object {
  const limit = first ?? limits.searchPageDefault.value
  if (limit < 0) throw refuse('first must be 0 or more')
  const offset = after === null || after === undefined ? 0 : fromCursor(after)
  if (offset + limit > limits.searchPageMax.value) {
    throw refuse(
      `a connection can page through at most ${limits.searchPageMax.value} entities; narrow the criteria`,
    )
  }
  let reading: Promise<readonly EntityJson[]> | undefined
  /** Reads one entity more than requested to find out whether there are more. */
  const read = async (): Promise<{ nodes: readonly EntityJson[]; hasMore: boolean }> => {
    reading ??= selection.select(criteria, { offset, limit: limit + 1 }, ranking)
    const found = await reading
    return { nodes: found.slice(0, limit), hasMore: found.length > limit }
  }
  const cursorAt = (index: number): string => toCursor(offset + index + 1)
  return {
    nodes: async () => (await read()).nodes,
    edges: async () => (await read()).nodes.map((node, index) => ({ node, cursor: cursorAt(index) })),
    pageInfo: async () => {
      const { nodes, hasMore } = await read()
      return {
        hasNextPage: hasMore,
        hasPreviousPage: offset > 0,
        startCursor: nodes.length === 0 ? null : cursorAt(0),
        endCursor: nodes.length === 0 ? null : cursorAt(nodes.length - 1),
      }
    },
    totalCount: () => selection.count(criteria),
  }
}

const toCursor = (position: number): string => Buffer.from(`at:${position}`).toString('base64url')

function fromCursor(cursor: string): number {
  const [, position] = /^at:(\d{1,9})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (position === undefined) throw refuse(`after: ${cursor} is not a valid cursor`)
  return Number(position)
}

const refuse = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })
