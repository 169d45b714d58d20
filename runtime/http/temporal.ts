/**
 * Routes of temporal entities (GS CIM 009, 6.20): to retrieve the evolution of one. An answer holds at most
 * `limits.temporalInstancesMax` instances; a longer evolution comes as 206 with the range that the answer covers.
 */
import { limits } from '#base/limits.ts'
import { checkName } from '#ngsi-ld/name.ts'
import { badRequestData, notFound } from '#ngsi-ld/problem.ts'
import { parseTemporalSelection, partOf, renderEvolution } from '#ngsi-ld/temporal.ts'
import type { Answers } from './answer.ts'
import type { Ask, Asks } from './ask.ts'
import type { HttpContext } from './body.ts'
import { listOf, optionsOf, wholeNumber } from './negotiate.ts'
import { idOf } from './path.ts'

export const temporalPath = '/ngsi-ld/v1/temporal/entities'

const selection = ['timerel', 'timeAt', 'endTimeAt', 'timeproperty', 'lastN', 'attrs'] as const
const retrieveParameters = new Set<string>([...selection, 'options', 'format', 'local'])

export function createTemporalRoutes({ asks, answers }: { asks: Asks; answers: Answers }) {
  return Object.freeze({
    async retrieve(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, retrieveParameters)
      const id = idOf(c)
      const query = queryOf(ask)
      const options = optionsOf(ask.parameters, ['temporalValues', 'sysAttrs'])
      const values = options.has('temporalValues') || ask.parameters.get('format') === 'temporalValues'
      const found = ask.broker.history(id, query)
      if (found === undefined) throw notFound(`no entity ${id} and none that had this id`)
      const part = found.truncated ? partOf(found, query.timeproperty, query.lastN) : undefined
      const context = answers.contextFor(ask)
      const text = JSON.stringify(
        renderEvolution(part?.evolution ?? found, {
          context,
          timeproperty: query.timeproperty,
          sysAttrs: options.has('sysAttrs'),
          values,
        }),
      )
      return part === undefined
        ? answers.entity(ask, text, context)
        : answers.partial(ask, text, context, part.range)
    },
  })
}

function queryOf({ parameters, context }: Ask) {
  const lastN = wholeNumber(parameters, 'lastN')
  if (lastN === 0) throw badRequestData('must be above 0', 'lastN')
  const attrs = listOf(parameters, 'attrs')?.map((term) => checkName(context.expand(term), 'attrs'))
  return {
    ...parseTemporalSelection({
      timerel: parameters.get('timerel'),
      timeAt: parameters.get('timeAt'),
      endTimeAt: parameters.get('endTimeAt'),
      timeproperty: parameters.get('timeproperty'),
    }),
    attrs: attrs === undefined ? undefined : new Set(attrs),
    lastN,
    limit: limits.temporalInstancesMax.value,
  }
}
