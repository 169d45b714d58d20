/**
 * Ceilings of the index; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const indexingLimits = {
  /** Written in one transaction. Beyond it: the next turn. */
  indexSlice: limit(32, 'entities'),
  /** Length of a transaction, during which nothing else runs. Beyond it: the next turn. */
  indexSliceMs: limit(1.5, 'ms'),
  /** Indexed characters of a text. Beyond it: compared in its document. */
  indexTextCharacters: limit(256, 'characters'),
  /** Indexed characters of labels and descriptions. Beyond it: not searched. */
  indexWordsCharacters: limit(4096, 'characters'),
  /** Numbers of attribute names in memory. Beyond it: the cache is cleared. */
  indexNamesKept: limit(4096, 'names'),
  /** Names of a path through relationships, 32 ways. Beyond it: 403. */
  indexPathNames: limit(6, 'names'),
  /** Ways of all paths of a query; SQLite joins 500 statements. Beyond it: 403. */
  indexPathWays: limit(240, 'ways'),
  /** Words of one search. Beyond it: 403. */
  indexSearchWords: limit(32, 'words'),
  /** Word prefixes in one search. Beyond it: 403. */
  indexSearchPrefixes: limit(4, 'words'),
  /** Largest page of candidates found by words; pages grow up to this. Beyond it: the next page. */
  indexWordsPage: limit(16_384, 'candidates'),
  /** Candidates evaluated in one statement, about 1 ms. Beyond it: the next one. */
  indexQuerySlice: limit(256, 'candidates'),
  /** Time of a query without yielding. Beyond it: other work runs. */
  indexTurnMs: limit(4, 'ms'),
  /** Time of a query, including other work in between. Beyond it: 403. */
  indexQueryMs: limit(10_000, 'ms'),
  /** Concurrent queries. Beyond it: further ones wait. */
  indexQueriesMax: limit(8, 'queries'),
  /** Queued queries. Beyond it: 503. */
  indexQueriesWaiting: limit(64, 'queries'),
  /** Candidates found by place or value at once, about 5 ms. Beyond it: all are scanned. */
  indexListMax: limit(4096, 'candidates'),
  /** A list this short is used without searching a shorter one. Beyond it: another condition is tried. */
  indexShortList: limit(1024, 'candidates'),
  /** Statements prepared for queries of one form. Beyond it: the oldest is evicted. */
  indexStatementsKept: limit(64, 'statements'),
  /** Related entities that a query caches. Beyond it: read again. */
  indexFollowedKept: limit(2048, 'entities'),
  /** Entities of the own broker read at a time. Beyond it: the next page. */
  indexLoadPage: limit(32, 'entities'),
  /**
   * Writing the time of each observation would wear out the card. Beyond it: replayed from the log after a
   * kill.
   */
  indexSeenMs: limit(60_000, 'ms'),
  /** Observation times in memory, about 2 MB. Beyond it: written. */
  indexSeenKept: limit(20_000, 'observations'),
  /** Ids of observations, with their numbers. Beyond it: looked up again. */
  indexObservationsKept: limit(20_000, 'ids'),
  /** Waiting for a position that a client names. Beyond it: a response with a warning. */
  indexWaitMs: limit(5_000, 'ms'),
  /** Requests that wait for a position. Beyond it: a response with a warning. */
  indexWaitingMax: limit(1_000, 'requests'),
  /** Changes not yet indexed, about a second. Beyond it: a response with a warning. */
  indexBehindMax: limit(1_000, 'changes'),
  /** As long as the original waited for its broker. Beyond it: 504. */
  indexForwardMs: limit(5_000, 'ms'),
  /** Entities merged from several brokers. Beyond it: 403. */
  indexForwardEntities: limit(10_000, 'entities'),
  /**
   * Responses of several brokers that are merged, or pages of one broker; a page is up to 2 MB. Beyond it:
   * 403.
   */
  indexForwardCharacters: limit(16 * 1024 * 1024, 'characters'),
  /** Pause between attempts on a failing disk. Beyond it: the next attempt. */
  indexDiskRetryMs: limit(1_000, 'ms'),
  /** Each is followed and read separately. Beyond it: 400. */
  indexBrokersMax: limit(64, 'brokers'),
  /** Interval of checking whether this gateway has an address. Beyond it: the next check. */
  indexStartMs: limit(100, 'ms'),
  /** Notifications of one broker that wait to be indexed. Beyond it: 503. */
  indexNotificationsMax: limit(256, 'notifications'),
  /**
   * How much later an older notification may arrive after a newer one. Beyond it: accepted: a clock was set
   * back.
   */
  indexReorderMs: limit(600_000, 'ms'),
  /** Entities of one broker whose last notification time is known. Beyond it: the oldest is forgotten. */
  indexNotifiedMax: limit(8192, 'entities'),
  /** An unreachable broker keeps our subscriptions. Beyond it: abandoned. */
  indexLeavingMs: limit(30 * 86_400_000, 'ms'),
} as const satisfies Record<string, Limit>
