/**
 * Memory outside V8's heap that nobody uses: pages that SQLite keeps for later, and what malloc keeps between pieces
 * that are in use. glibc gives the latter back where it is asked to and never by itself: 25 of 130 MB after a start
 * with 100,000 entities. It takes milliseconds and stops whoever allocates meanwhile, so it is asked for rarely.
 */
import BetterSqlite3 from 'better-sqlite3'
import type { Holding } from '#base/process/garbage-collection.ts'
import type { Database } from './database.ts'

/** The types of the library leave the second parameter out. */
type ExtensionCaller = Database & { loadExtension(file: string, entryPoint: string): unknown }

/** Gives back what is free, with `caches` the page caches of these connections first. */
export function giveBackMemory(databases: Iterable<Database>, what: Holding): void {
  if (what === 'caches') for (const database of databases) database.pragma('shrink_memory')
  trimMalloc()
}

/**
 * Calls `malloc_trim` of glibc, as SQLite calls a function of a library by its name: as what begins an extension. It is
 * handed an address where it takes how many bytes to leave at the end of the heap, more than there are; the end is
 * given back without being asked for. It returns 1 where it could free something, which SQLite takes for an error.
 */
function trimMalloc(): void {
  const caller = new BetterSqlite3(':memory:') as ExtensionCaller
  try {
    caller.loadExtension('libc.so.6', 'malloc_trim')
  } catch {
    // Done; or a C library that has nothing like it.
  } finally {
    caller.close()
  }
}
