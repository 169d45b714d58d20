/** Classifies requests to the proxy: for subscriptions, for a ranked list, or for the broker. Pure. */

export type RequestKind = 'subscriptions' | 'ranked' | 'broker'

/** @param target path and query as written. */
export function kindOf(method: string, target: string): RequestKind {
  const [path, query = ''] = target.split(/\?(.*)/s, 2) as [string, string?]
  if (/^\/ngsi-ld\/v1\/subscriptions(?:\/|$)/.test(path)) return 'subscriptions'
  const isRead = method === 'GET' || method === 'HEAD'
  return isRead && /^\/ngsi-ld\/v1\/entities\/?$/.test(path) && isRanked(query) ? 'ranked' : 'broker'
}

/** Whether a query has weights, in any form that the ranking reads. */
const isRanked = (query: string): boolean => /(?:^|&)(?:weights=|rankWeights(?:\[|%5[Bb]|=))/.test(query)

/** Whether a request may change entities. */
export const isWrite = (method: string, target: string): boolean =>
  !/^(?:GET|HEAD|OPTIONS)$/.test(method) &&
  !/^\/ngsi-ld\/v1\/(?:temporal\/)?entityOperations\/query\b/.test(target)
