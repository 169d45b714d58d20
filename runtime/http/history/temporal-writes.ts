/**
 * Routes that write histories (GS CIM 009, 6.18 to 6.22): temporal entities are created, extended and deleted
 * as a whole, by attribute and by instance. They contain no rules about histories.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, nextTurn } from '#base/load/yielding.ts'
import { typesOf } from '#http/entities/entity-search.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import { idOf, pathSegment } from '#http/request/path-ids.ts'
import { statedHeader, statedIn } from '#ngsi-ld/federation/uplink-statements.ts'
import {
  parseTemporalEntity,
  parseTemporalFragment,
  parseTemporalInstance,
  type TemporalFragment,
} from '#ngsi-ld/history/temporal-entity.ts'
import { truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { temporalPath } from './temporal-routes.ts'

const localParameters = new Set(['local'])
const deleteParameters = new Set(['local', 'type'])
const createParameters = new Set(['local', 'options'])
const deleteAttributeParameters = new Set(['local', 'datasetId', 'deleteAll'])

export function createTemporalWriteRoutes({ requests, answers }: ApiPorts) {
  const yieldIfDue = createYield(() => performance.now(), limits.queryTurnMs.value)
  return Object.freeze({
    /** 201 if the id had no history, otherwise 204. */
    async create(c: HttpContext): Promise<Response> {
      const request = await requests.body(c, { known: createParameters, creates: true })
      const keepsTimes = optionsOf(request.parameters, ['sysAttrs']).has('sysAttrs')
      const isPast = statedIn(headerOf(c, statedHeader)).has('past')
      const options = { yieldIfDue, keepsTimes, isPast }
      const entity = await parseTemporalEntity(request.body, request.context, options)
      if (isLong(entity)) await nextTurn()
      const outcome = await (await request.enter()).temporal.put(entity, requests.by(c))
      return outcome === 'created'
        ? answers.created(request, `${temporalPath}/${pathSegment(entity.id)}`)
        : answers.noContent(request)
    },

    async remove(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, deleteParameters)
      await request.broker.temporal.remove(idOf(c), requests.by(c), typesOf(request))
      return answers.noContent(request)
    },

    async append(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const request = await requests.body(c, { known: localParameters })
      const fragment = await parseTemporalFragment(request.body, request.context, { yieldIfDue, id })
      if (isLong(fragment)) await nextTurn()
      await (await request.enter()).temporal.append(id, fragment, requests.by(c))
      return answers.noContent(request)
    },

    async removeAttribute(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const request = await requests.read(c, deleteAttributeParameters)
      const name = checkName(request.context.expand(termOf(c)), 'attribute')
      const datasetId = request.parameters.get('datasetId')
      const deleteAll = truthOf(request.parameters, 'deleteAll') ?? false
      if (datasetId !== undefined && datasetId !== '@none') checkUri(datasetId, 'datasetId')
      if (deleteAll && datasetId !== undefined)
        throw badRequestData('cannot be combined with deleteAll', 'datasetId')
      await request.broker.temporal.removeAttribute(id, name, {
        datasetId: datasetId === '@none' ? undefined : datasetId,
        deleteAll,
        by: requests.by(c),
      })
      return answers.noContent(request)
    },

    async replaceInstance(c: HttpContext): Promise<Response> {
      const [id, term, instanceId] = [idOf(c), termOf(c), instanceIdOf(c)]
      const request = await requests.body(c, { known: localParameters })
      const name = checkName(request.context.expand(term), 'attribute')
      const instance = parseTemporalInstance(request.body, name, term, request.context)
      await (await request.enter()).temporal.replaceInstance(id, name, instanceId, instance)
      return answers.noContent(request)
    },

    async removeInstance(c: HttpContext): Promise<Response> {
      const [id, term, instanceId] = [idOf(c), termOf(c), instanceIdOf(c)]
      const request = await requests.read(c, localParameters)
      const name = checkName(request.context.expand(term), 'attribute')
      await request.broker.temporal.removeInstance(id, name, instanceId)
      return answers.noContent(request)
    },
  })
}

/** Whether the commit takes so long that it gets a turn of its own: 3 ms or more. */
const isLong = ({ attributes }: TemporalFragment): boolean =>
  [...attributes.values()].some((instances) => instances.length > 1000)

const termOf = (c: HttpContext): string => c.req.param('attribute') ?? ''
const instanceIdOf = (c: HttpContext): string => checkUri(c.req.param('instance'), 'instanceId')
