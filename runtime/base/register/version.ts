/** The one place that knows which version runs; read from package.json and fixed into the bundle. */
import manifest from '#package' with { type: 'json' }

export const version: string = manifest.version
/** How the running version names itself on the wire and in files. */
export const productToken = `selvedge/${version}`
/** No clock that says less is right: this version was made later. */
export const madeAfterMs = Date.UTC(2026, 0, 1)
