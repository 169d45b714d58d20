/**
 * The scopes of an entity within a window of time (GS CIM 009, 4.18): a scope is valid from the time it was
 * set until it was replaced or removed. Pure.
 */
import type { Json } from '#contract/pipeline.ts'
import { isList } from '#ngsi-ld/values/json.ts'
import type { TimedInstance, TimeProperty } from './temporal-query.ts'

/**
 * All scopes of an entity that were valid at some time from `from` until before `to` (ms), one list for each
 * time.
 * @param instances the whole evolution of the scope.
 */
export function scopesWithin(
  instances: readonly TimedInstance[],
  property: TimeProperty,
  { from, to }: { readonly from: number; readonly to: number },
): readonly (readonly string[])[] {
  const timeOf = ({ observedAt, modifiedAt }: TimedInstance): number =>
    property === 'observedAt' ? (observedAt ?? modifiedAt) : modifiedAt
  const ordered = instances.toSorted((a, b) => timeOf(a) - timeOf(b))
  return ordered.flatMap((one, i) => {
    const end = ordered[i + 1]
    const isValid = timeOf(one) < to && (end === undefined || timeOf(end) > from)
    return isValid && one.deletedAt === undefined ? [textsIn(one.instance['value'])] : []
  })
}

const textsIn = (value: Json | undefined): readonly string[] =>
  isList(value) ? value.filter((one) => typeof one === 'string') : typeof value === 'string' ? [value] : []
