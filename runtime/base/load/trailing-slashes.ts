/** Slashes at the end of a path, which routers ignore. */

/** The path without them. A regular expression would take quadratic time for a path of slashes. */
export function withoutTrailingSlashes(path: string): string {
  let end = path.length
  while (end > 0 && path[end - 1] === '/') end--
  return path.slice(0, end)
}
