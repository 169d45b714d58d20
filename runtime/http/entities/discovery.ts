/**
 * Routes that list entity types and attributes (GS CIM 009, 6.25 to 6.28). Names are in the request's
 * context, ids are full IRIs. The caller decides which brokers are included.
 */
import { randomUUID } from 'node:crypto'
import type { AttributeUse, TypeUse } from '#broker/entities/inventory.ts'
import type { HttpContext } from '#http/request/body.ts'
import type { ApiRequest, RequestReader } from '#http/request/request.ts'
import type { Answers } from '#http/request/response.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import { truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { checkName } from '#ngsi-ld/values/names.ts'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { withShortNames } from './entity-search.ts'

export const typesPath = '/ngsi-ld/v1/types'
export const attributesPath = '/ngsi-ld/v1/attributes'

const listParameters = new Set(['details', 'local'])
const oneParameters = new Set(['local'])

export function createDiscoveryRoutes({ requests, answers }: { requests: RequestReader; answers: Answers }) {
  /** The list as one object, or as an array with details. */
  const list = <Use extends { readonly name: string }>(
    request: ApiRequest,
    uses: readonly Use[],
    shape: { kind: string; member: string; detail: (use: Use, context: Context) => object },
  ): Response => {
    const context = answers.contextFor(request)
    if (truthOf(request.parameters, 'details') === true) {
      const texts = uses.map((use) => JSON.stringify(shape.detail(use, context)))
      return answers.list(request, { texts, context })
    }
    const names = uses.map(({ name }) => context.compact(name))
    const id = `urn:ngsi-ld:${shape.kind}:${randomUUID()}`
    return answers.entity(request, JSON.stringify({ id, type: shape.kind, [shape.member]: names }), context)
  }

  const one = <Use extends { readonly name: string }>(
    request: ApiRequest,
    text: string,
    uses: readonly Use[],
    info: (use: Use, context: Context) => object,
  ): Response => {
    const context = answers.contextFor(request)
    const names = [request, withShortNames(request)].map((one) => checkName(one.context.expand(text), 'name'))
    const [use] = names.flatMap((name) => uses.find((candidate) => candidate.name === name) ?? [])
    if (use === undefined) throw notFound(`no entity has the type or attribute ${text}`)
    return answers.entity(request, JSON.stringify(info(use, context)), context)
  }

  return Object.freeze({
    async types(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, listParameters)
      const shape = { kind: 'EntityTypeList', member: 'typeList', detail: entityType }
      return list(request, request.broker.inventory.types(), shape)
    },

    async type(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, oneParameters)
      return one(request, c.req.param('type') ?? '', request.broker.inventory.types(), entityTypeInfo)
    },

    async attributes(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, listParameters)
      const shape = { kind: 'AttributeList', member: 'attributeList', detail: attributeOf }
      return list(request, request.broker.inventory.attributes(), shape)
    },

    async attribute(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, oneParameters)
      return one(
        request,
        c.req.param('attribute') ?? '',
        request.broker.inventory.attributes(),
        attributeInfo,
      )
    },
  })
}

const entityType = ({ name, attributes }: TypeUse, { compact }: Context) => ({
  id: toIri(name),
  type: 'EntityType',
  typeName: compact(name),
  attributeNames: attributes.map((attribute) => compact(attribute.name)),
})

const entityTypeInfo = ({ name, entities, attributes }: TypeUse, { compact }: Context) => ({
  id: toIri(name),
  type: 'EntityTypeInfo',
  typeName: compact(name),
  entityCount: entities,
  attributeDetails: attributes.map((attribute) => ({
    id: toIri(attribute.name),
    type: 'Attribute',
    attributeName: compact(attribute.name),
    attributeTypes: attribute.kinds,
  })),
})

const attributeOf = ({ name, types }: AttributeUse, { compact }: Context) => ({
  id: toIri(name),
  type: 'Attribute',
  attributeName: compact(name),
  typeNames: types.map(compact),
})

const attributeInfo = (use: AttributeUse, context: Context) => ({
  id: toIri(use.name),
  type: 'Attribute',
  attributeName: context.compact(use.name),
  attributeCount: use.entities,
  attributeTypes: use.kinds,
  typeNames: use.types.map(context.compact),
})
