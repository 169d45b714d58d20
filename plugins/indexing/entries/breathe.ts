/** Yields to the event loop between two slices of work. */

/** Resolves after one turn of the event loop. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
