/**
 * The ceilings of the index; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const indexingLimits = {
  indexSlice: limit(32, 'entities', 'Written in one transaction, about 3 ms', 'the next turn'),
  indexTextCharacters: limit(256, 'characters', 'Of a text, to be compared', 'compared in its document'),
  indexWordsCharacters: limit(4096, 'characters', 'Of labels and descriptions', 'are not searched'),
  indexNamesKept: limit(4096, 'names', 'Numbers of attribute names in memory', 'all are forgotten'),
  indexPathNames: limit(6, 'names', 'Of a path through relationships, 32 ways', 'a broker is asked'),
  indexSearchWords: limit(32, 'words', 'Of one search', '403'),
  indexQuerySlice: limit(256, 'candidates', 'Looked at in one statement, about 1 ms', 'the next one'),
  indexTurnMs: limit(4, 'ms', 'Of a query, in one piece', 'others have their turn'),
  indexListMax: limit(
    4096,
    'candidates',
    'Found by place or value at once, about 5 ms',
    'all are walked through',
  ),
  indexShortList: limit(1024, 'candidates', 'Short enough not to look for less', 'another way is tried'),
  indexStatementsKept: limit(64, 'statements', 'Prepared for queries of one form', 'the oldest leaves'),
  indexFollowedKept: limit(2048, 'entities', 'That a query followed relationships to', 'are read again'),
  indexLoadPage: limit(128, 'entities', 'Read of the own broker at a time', 'the next page'),
  indexSeenMs: limit(
    60_000,
    'ms',
    'Cards wear by writing when each observation was made',
    'told again after a kill',
  ),
  indexSeenKept: limit(20_000, 'observations', 'Whose times are in memory, about 2 MB', 'are written'),
  indexObservationsKept: limit(20_000, 'ids', 'Of observations, with their numbers', 'are looked up again'),
  indexWaitMs: limit(5_000, 'ms', 'For a position that a client names', 'an answer with a warning'),
  indexWaitingMax: limit(1_000, 'requests', 'That wait for a position', 'an answer with a warning'),
  indexForwardMs: limit(5_000, 'ms', 'As the original waited for its broker', '504'),
  indexForwardEntities: limit(10_000, 'entities', 'Merged of several brokers', '403'),
  indexLookMs: limit(60_000, 'ms', 'Whether the subscriptions of the index are there', 'the next look'),
  indexDiskRetryMs: limit(1_000, 'ms', 'Between attempts on a disk that fails', 'the next attempt'),
} as const satisfies Record<string, Limit>
