/**
 * Routes that write history (GS CIM 009, 6.18 to 6.22): temporal entities are created, extended and deleted as a whole,
 * by attribute and by instance. They hold no rule about history.
 */

import { typesOf } from '#http/entities/entity-search.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { optionsOf, truthOf } from '#http/request/negotiate.ts'
import { idOf, pathSegment } from '#http/request/path-ids.ts'
import { statedHeader, statedIn } from '#ngsi-ld/federation/uplink-statements.ts'
import {
  parseTemporalEntity,
  parseTemporalFragment,
  parseTemporalInstance,
} from '#ngsi-ld/history/temporal-entity.ts'
import { checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type TemporalRoutePorts, temporalPath } from './temporal-routes.ts'

const localParameters = new Set(['local'])
const deleteParameters = new Set(['local', 'type'])
const createParameters = new Set(['local', 'options'])
const deleteAttributeParameters = new Set(['local', 'datasetId', 'deleteAll'])

export function createTemporalWriteRoutes({ asks, answers }: TemporalRoutePorts) {
  return Object.freeze({
    /** 201 where there was no history of this id, else 204. */
    async create(c: HttpContext): Promise<Response> {
      const ask = await asks.body(c, { known: createParameters, creates: true })
      const keepsTimes = optionsOf(ask.parameters, ['sysAttrs']).has('sysAttrs')
      const isPast = statedIn(headerOf(c, statedHeader)).has('past')
      const entity = parseTemporalEntity(ask.body, ask.context, { keepsTimes, isPast })
      const outcome = await (await ask.enter()).temporal.put(entity, asks.by(c))
      return outcome === 'created'
        ? answers.created(ask, `${temporalPath}/${pathSegment(entity.id)}`)
        : answers.noContent(ask)
    },

    async remove(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, deleteParameters)
      await ask.broker.temporal.remove(idOf(c), asks.by(c), typesOf(ask))
      return answers.noContent(ask)
    },

    async append(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const ask = await asks.body(c, { known: localParameters })
      const fragment = parseTemporalFragment(ask.body, ask.context, { id })
      await (await ask.enter()).temporal.append(id, fragment, asks.by(c))
      return answers.noContent(ask)
    },

    async removeAttribute(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const ask = await asks.read(c, deleteAttributeParameters)
      const name = checkName(ask.context.expand(termOf(c)), 'attribute')
      const datasetId = ask.parameters.get('datasetId')
      const deleteAll = truthOf(ask.parameters, 'deleteAll') ?? false
      if (datasetId !== undefined && datasetId !== '@none') checkUri(datasetId, 'datasetId')
      if (deleteAll && datasetId !== undefined) throw badRequestData('goes not with deleteAll', 'datasetId')
      await ask.broker.temporal.removeAttribute(id, name, {
        datasetId: datasetId === '@none' ? undefined : datasetId,
        deleteAll,
        by: asks.by(c),
      })
      return answers.noContent(ask)
    },

    async replaceInstance(c: HttpContext): Promise<Response> {
      const [id, term, instanceId] = [idOf(c), termOf(c), instanceIdOf(c)]
      const ask = await asks.body(c, { known: localParameters })
      const name = checkName(ask.context.expand(term), 'attribute')
      const instance = parseTemporalInstance(ask.body, name, term, ask.context)
      await (await ask.enter()).temporal.replaceInstance(id, name, instanceId, instance)
      return answers.noContent(ask)
    },

    async removeInstance(c: HttpContext): Promise<Response> {
      const [id, term, instanceId] = [idOf(c), termOf(c), instanceIdOf(c)]
      const ask = await asks.read(c, localParameters)
      const name = checkName(ask.context.expand(term), 'attribute')
      await ask.broker.temporal.removeInstance(id, name, instanceId)
      return answers.noContent(ask)
    },
  })
}

const termOf = (c: HttpContext): string => c.req.param('attribute') ?? ''
const instanceIdOf = (c: HttpContext): string => checkUri(c.req.param('instance'), 'instanceId')
