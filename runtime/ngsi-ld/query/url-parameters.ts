/**
 * Query parameters of NGSI-LD requests as typed values: numbers, flags, lists and paging. The routes of this
 * gateway and its plugins share them, so that they accept the same values and reject others alike.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'

/** Query parameters by name. */
export type Parameters = ReadonlyMap<string, string>

export interface Paging {
  readonly limit: number
  readonly offset: number
  readonly count: boolean
}

/**
 * limit, offset and count (6.3.10).
 * @throws GatewayError ngsi-ld.bad-request-data; ngsi-ld.too-many-results above `limits.pageMax`.
 */
export function pagingOf(parameters: Parameters): Paging {
  const limit = wholeNumber(parameters, 'limit') ?? limits.pageDefault.value
  const offset = wholeNumber(parameters, 'offset') ?? 0
  const count = truthOf(parameters, 'count') ?? false
  if (limit > limits.pageMax.value) {
    throw new GatewayError('ngsi-ld.too-many-results', `limit ${limit} is above ${limits.pageMax.value}`, {
      limit,
    })
  }
  if (limit === 0 && !count) throw badParameter('limit 0 is allowed only with count=true', 'limit')
  return { limit, offset, count }
}

/** A non-negative integer parameter. @throws GatewayError ngsi-ld.bad-request-data */
export function wholeNumber(parameters: Parameters, name: string): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text))
    throw badParameter(`${name} must be a non-negative integer, got ${text}`, name)
  return Number(text)
}

/** A boolean parameter. @throws GatewayError ngsi-ld.bad-request-data */
export function truthOf(parameters: Parameters, name: string): boolean | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  if (text !== 'true' && text !== 'false') throw badParameter(`${name} must be true or false`, name)
  return text === 'true'
}

/** A comma-separated parameter; undefined if absent. @throws GatewayError if an item is empty. */
export function listOf(parameters: Parameters, name: string): readonly string[] | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const items = text.split(',').map((item) => item.trim())
  if (items.includes('')) throw badParameter(`${name} has an empty item`, name)
  return items
}

/** Treats `options=count` as `count=true`: clients written before V1.3.1 still send it. */
export function countAsParameter(given: Parameters): Parameters {
  const options = given.get('options')?.split(',')
  if (options?.includes('count') !== true) return given
  const parameters = new Map(given)
  const others = options.filter((option) => option !== 'count')
  if (others.length > 0) parameters.set('options', others.join())
  else parameters.delete('options')
  if (!parameters.has('count')) parameters.set('count', 'true')
  return parameters
}

/** @param name the rejected parameter. */
export function badParameter(message: string, name: string): GatewayError {
  return new GatewayError('ngsi-ld.bad-request-data', message, { parameter: name })
}
