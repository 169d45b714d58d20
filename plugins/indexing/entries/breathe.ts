/** Lets everything else that waits have its turn between two slices of work. */

/** Resolves when the event loop went round once. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
