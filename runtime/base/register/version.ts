/** The running version, read from package.json and fixed into the bundle at build time. */
import manifest from '#package' with { type: 'json' }

export const version: string = manifest.version
/** Name of the running version on the wire and in files. */
export const productToken = `selvedge/${version}`
/** A lower bound of the current time, since this version was made later. */
export const madeAfterMs = Date.UTC(2026, 0, 1)
