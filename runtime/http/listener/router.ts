/**
 * Finds the route of a path segment by segment: one lookup per segment, however many routes exist. A literal
 * segment wins over a parameter, and a trailing slash is ignored. A parameter is never empty, except an id
 * with further segments behind it: that is an invalid id, not another resource.
 */
import type { Result, Router } from 'hono/router'

interface Place<T> {
  readonly spelled: Map<string, Place<T>>
  parameter?: { readonly name: string; readonly place: Place<T> }
  target?: T
}

/** Supports routes for all methods only; each path has one route. */
export function createRouter<T>(): Router<T> {
  const root: Place<T> = { spelled: new Map() }
  const nothing: Result<T> = [[]]

  const behind = (place: Place<T>, segment: string): Place<T> => {
    if (segment.startsWith(':')) {
      place.parameter ??= { name: segment.slice(1), place: { spelled: new Map() } }
      return place.parameter.place
    }
    const next = place.spelled.get(segment) ?? { spelled: new Map() }
    place.spelled.set(segment, next)
    return next
  }

  return {
    name: 'segments',
    add(_, path, target) {
      const segments = path.split('/').filter((segment) => segment !== '')
      segments.reduce(behind, root).target = target
    },
    match(_, path) {
      const end = path.endsWith('/') ? path.length - 1 : path.length
      const parameters: Record<string, string> = {}
      let place = root
      for (let start = 1; start <= end; ) {
        const slash = path.indexOf('/', start)
        const stop = slash === -1 ? end : slash
        const segment = path.slice(start, stop)
        const spelled = place.spelled.get(segment)
        if (spelled !== undefined) place = spelled
        else {
          const { parameter } = place
          if (parameter === undefined || (segment === '' && (parameter.name !== 'id' || stop === end)))
            return nothing
          parameters[parameter.name] = segment
          place = parameter.place
        }
        start = stop + 1
      }
      return place.target === undefined ? nothing : [[[place.target, parameters]]]
    },
  }
}
