/**
 * Releases unused memory outside V8's heap: SQLite's cached pages, and free memory that malloc holds between
 * blocks in use. glibc returns the latter only on request: 25 of 130 MB after a start with 100,000 entities.
 * The call takes milliseconds and blocks threads that allocate meanwhile, so it is made rarely.
 */
import BetterSqlite3 from 'better-sqlite3'
import type { Holding } from '#base/process/garbage-collection.ts'
import type { Database } from './database.ts'

/** The library's types omit the second parameter. */
type ExtensionCaller = Database & { loadExtension(file: string, entryPoint: string): unknown }

/** Releases free memory. With `caches`, it first empties the page caches of these connections. */
export function releaseMemory(databases: Iterable<Database>, what: Holding): void {
  if (what === 'caches') for (const database of databases) database.pragma('shrink_memory')
  trimMalloc()
}

/**
 * Calls glibc's `malloc_trim` through SQLite, which calls a function of a library by name as the entry point
 * of an extension. The function receives an address in place of the number of bytes to keep at the end of the
 * heap. That number exceeds the heap, so the end is left alone; malloc trims it by itself. It returns 1 when
 * it freed something, which SQLite takes for an error.
 */
function trimMalloc(): void {
  const caller = new BetterSqlite3(':memory:') as ExtensionCaller
  try {
    caller.loadExtension('libc.so.6', 'malloc_trim')
  } catch {
    // Either memory was freed, or this C library has no such function.
  } finally {
    caller.close()
  }
}
