/**
 * Parses the parameters of temporal requests (GS CIM 009, 5.7.3, 5.7.4 and 6.3.7): window, attributes,
 * representation and aggregates. The attributes to read follow from the attributes to show.
 */
import type { AggregateQuery, TemporalQuery } from '#broker/history/temporal-requests.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { checkLanguages, languageRanges } from '#ngsi-ld/entity/language.ts'
import { type AggregateMethod, aggregateMethods } from '#ngsi-ld/history/aggregate.ts'
import { parseTemporalSelection, type TemporalRendering } from '#ngsi-ld/history/temporal-query.ts'
import { listOf, type Parameters, wholeNumber } from '#ngsi-ld/query/url-parameters.ts'
import { parseDuration } from '#ngsi-ld/values/duration.ts'
import { checkListedName, checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Parameters that this file reads. */
export const historyParameters = [
  'timerel',
  'timeAt',
  'endTimeAt',
  'timeproperty',
  'lastN',
  'attrs',
  'pick',
  'omit',
  'datasetId',
  'lang',
  'options',
  'format',
  'aggrMethods',
  'aggrPeriodDuration',
] as const

export interface HistoryOptions {
  readonly query: TemporalQuery
  /** Full IRIs of the names in `attrs`. */
  readonly attrs: ReadonlySet<string> | undefined
  /** Set if aggregates are requested. */
  readonly aggregates: AggregateQuery | undefined
  readonly rendering: Omit<TemporalRendering, 'context'>
}

const formats = ['normalized', 'temporalValues', 'aggregatedValues']

/** @throws ngsi-ld.bad-request-data, ngsi-ld.invalid-request */
export function historyOptionsOf(parameters: Parameters, context: Context, limit: number): HistoryOptions {
  const lastN = wholeNumber(parameters, 'lastN')
  if (lastN === 0) throw badRequestData('must be above 0', 'lastN')
  const selection = parseTemporalSelection({
    timerel: parameters.get('timerel'),
    timeAt: parameters.get('timeAt'),
    endTimeAt: parameters.get('endTimeAt'),
    timeproperty: parameters.get('timeproperty'),
  })
  const { attrs, pick, omit } = projectionOf(parameters, context)
  const options = optionsOf(parameters, [...formats, 'sysAttrs', 'unobserved'])
  const format = formatOf(options, parameters.get('format'))
  const lang = parameters.get('lang')
  const datasets = listOf(parameters, 'datasetId')
  for (const dataset of datasets ?? []) if (dataset !== '@none') checkUri(dataset, 'datasetId')
  const query: TemporalQuery = {
    ...selection,
    attrs: attrs ?? attributesIn(pick),
    datasets: datasets === undefined ? undefined : new Set(datasets),
    lastN,
    limit,
    unobserved: options.has('unobserved'),
  }
  if (query.unobserved === true && query.timeproperty === 'observedAt')
    throw badRequestData('must not be observedAt, because unobserved values have none', 'timeproperty')
  return {
    query,
    attrs,
    aggregates: aggregatesOf(parameters, { format, options }, query),
    rendering: {
      timeproperty: selection.timeproperty,
      sysAttrs: options.has('sysAttrs'),
      values: format === 'temporalValues',
      lang: lang === undefined ? undefined : languageRanges(checkLanguages(lang)),
      pick,
      omit,
    },
  }
}

interface Projection {
  readonly attrs: ReadonlySet<string> | undefined
  readonly pick: ReadonlySet<string> | undefined
  readonly omit: ReadonlySet<string> | undefined
}

function projectionOf(parameters: Parameters, context: Context): Projection {
  const namesOf = (name: string): ReadonlySet<string> | undefined => {
    const text = parameters.get(name)
    if (text === undefined) return undefined
    const terms = text.split(name === 'attrs' ? ',' : /[,|]/).map((term) => term.trim())
    if (terms.includes('')) throw badRequestData('has an empty name', name)
    const check = name === 'attrs' ? checkListedName : checkName
    return new Set(terms.map((term) => check(context.expand(term), name)))
  }
  const [attrs, pick, omit] = [namesOf('attrs'), namesOf('pick'), namesOf('omit')]
  if (attrs !== undefined && (pick !== undefined || omit !== undefined)) {
    throw badRequestData('cannot be combined with pick or omit', 'attrs')
  }
  const both = [...(pick ?? [])].find((name) => omit?.has(name))
  if (both !== undefined) throw badRequestData(`${both} is also in pick`, 'omit')
  return { attrs, pick, omit }
}

/**
 * The attributes to show; undefined if `pick` names none, since then other conditions select the entities.
 */
function attributesIn(pick: ReadonlySet<string> | undefined): ReadonlySet<string> | undefined {
  const names = [...(pick ?? [])].filter((name) => name !== 'id' && name !== 'type')
  return names.length === 0 ? undefined : new Set(names)
}

/** `format` takes precedence over `options`. */
function formatOf(options: ReadonlySet<string>, format: string | undefined): string {
  if (format !== undefined) return format
  const requested = formats.filter((each) => options.has(each))
  if (requested.length > 1) throw invalidRequest(`options: ${requested.join(' and ')} exclude each other`)
  return requested[0] ?? 'normalized'
}

function aggregatesOf(
  parameters: Parameters,
  { format, options }: { format: string; options: ReadonlySet<string> },
  query: TemporalQuery,
): AggregateQuery | undefined {
  const names = listOf(parameters, 'aggrMethods')
  const text = parameters.get('aggrPeriodDuration')
  if (format !== 'aggregatedValues') {
    if ((names !== undefined || text !== undefined) && !options.has('aggregatedValues')) {
      throw invalidRequest('aggrMethods and aggrPeriodDuration require options=aggregatedValues')
    }
    return undefined
  }
  if (names === undefined) throw badRequestData('is required with aggregatedValues', 'aggrMethods')
  const methods = names.map((name): AggregateMethod => {
    const method = aggregateMethods.find((each) => each === name)
    if (method === undefined) {
      throw badRequestData(`${name} must be one of ${aggregateMethods.join(', ')}`, 'aggrMethods')
    }
    return method
  })
  const duration = text === undefined ? undefined : parseDuration(text)
  if (text !== undefined && duration === undefined) {
    throw badRequestData('must be a duration such as PT1H', 'aggrPeriodDuration')
  }
  return { ...query, methods: new Set(methods), duration }
}
