/**
 * The ceilings of the index; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const indexingLimits = {
  indexSlice: limit(32, 'entities', 'Written in one transaction, about 3 ms', 'the next turn'),
  indexTextCharacters: limit(256, 'characters', 'Of a text, to be compared', 'compared in its document'),
  indexWordsCharacters: limit(4096, 'characters', 'Of labels and descriptions', 'are not searched'),
  indexNamesKept: limit(4096, 'names', 'Numbers of attribute names in memory', 'all are forgotten'),
} as const satisfies Record<string, Limit>
