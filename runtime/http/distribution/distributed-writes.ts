/**
 * Writes of one entity that involve context sources (GS CIM 009, 5.6.1 to 5.6.6, 5.6.17 to 5.6.19). Each
 * source receives the part it claims, the route processes the rest, and the results are combined into one
 * response. If only one broker is responsible, its result is returned; if the results of several differ, the
 * response is a 207.
 */

import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import type { Sources } from '#federation/sources.ts'
import { type PartOutcome, sendPart } from '#federation/writing.ts'
import { entitiesPath } from '#http/entities/entity-routes.ts'
import { temporalPath } from '#http/history/temporal-routes.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import { type Bodies, type HttpContext, headerOf } from '#http/request/body.ts'
import { anyParameter, type Distributed } from '#http/request/distributed-request.ts'
import type { Problems } from '#http/request/error-response.ts'
import { pathSegment } from '#http/request/path-ids.ts'
import type { RequestHead } from '#http/request/request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import {
  bodyWith,
  datasetsIn,
  namesIn,
  splitWrite,
  type WritePart,
} from '#ngsi-ld/federation/distribution.ts'
import type { SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'
import { parseTypeSelection, typeNamesOf } from '#ngsi-ld/query/entity-selector.ts'
import { isObject, type JsonObject, listOf, textsOf } from '#ngsi-ld/values/json.ts'
import { checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/**
 * The object of a request: an entity in the body, attributes in the body, a whole entity, or one attribute.
 */
export type WriteKind = 'entity' | 'fragment' | 'whole' | 'attribute'

export interface DistributedWritePorts extends ApiPorts {
  readonly bodies: Bodies
  readonly problems: Problems
  readonly sources: Sources
}

interface Write {
  readonly operation: SourceOperation
  readonly kind: WriteKind
  readonly local: (c: HttpContext) => Response | Promise<Response>
}

/** The parts of a request needed to split it. */
interface Target {
  readonly parsed: RequestHead
  readonly id: string
  readonly types: readonly string[] | undefined
  readonly names: readonly string[]
  readonly datasetsOf: (name: string) => readonly string[]
  readonly body: JsonObject | undefined
}

/** The result of a part, and the attributes of that part. */
interface Outcome extends PartOutcome {
  readonly attributes: WritePart['attributes']
}

/** The local result: the response, and its error body if any. */
interface LocalOutcome {
  readonly answer: Response
  readonly problem?: JsonObject
}

export function createDistributedWrites(ports: DistributedWritePorts) {
  const { bodies, requests, answers, problems, sources } = ports

  async function targetOf({ c, broker }: Distributed, { operation, kind }: Write): Promise<Target> {
    const hasBody = !operation.startsWith('delete')
    if (hasBody) c.env = { ...c.env, body: await bodies.raw(c) }
    const parsed = hasBody
      ? await requests.body(c, { known: anyParameter })
      : await requests.read(c, anyParameter)
    const body = 'body' in parsed && isObject(parsed.body) ? parsed.body : undefined
    if (hasBody && body === undefined) throw badRequestData('must be a JSON object', 'body')
    const isCreation = isCreating(operation)
    const id = checkUri(isCreation ? (body!['id'] ?? body!['@id']) : c.req.param('id'), 'id')
    const { expand } = parsed.context
    const selected = parsed.parameters.get('type')
    const declared = isCreation || kind === 'entity' ? (body!['type'] ?? body!['@type']) : undefined
    const types = typesNamed(declared, selected, expand) ?? typesHeld(broker.retrieve(id)?.entity().type)
    const known = { parsed, id, types, body }
    if (kind === 'attribute') {
      const one = body?.['datasetId'] ?? parsed.parameters.get('datasetId') ?? '@none'
      const names = [expand(c.req.param('attribute') ?? '')]
      return { ...known, names, datasetsOf: () => textsOf(one) }
    }
    const given = body ?? {}
    return { ...known, names: namesIn(given, expand), datasetsOf: datasetsIn(given, expand) }
  }

  async function runLocal(
    { c }: Distributed,
    { local }: Write,
    body: JsonObject | undefined,
  ): Promise<LocalOutcome> {
    if (body !== undefined) c.env = { ...c.env, body: Buffer.from(JSON.stringify(body)) }
    let answer: Response
    try {
      answer = await local(c)
    } catch (error) {
      answer = problems.answer(error)
    }
    if (answer.status < 300 && answer.status !== 207) return { answer }
    const problem = (await answer.clone().json()) as JsonObject
    return { answer, problem }
  }

  function answerOf(
    target: Target,
    write: Write,
    outcomes: readonly Outcome[],
    local?: LocalOutcome,
  ): Response {
    const all = [
      ...(local === undefined ? [] : [local.answer.status]),
      ...outcomes.map(({ status }) => status),
    ]
    const bad = outcomes.filter(({ status }) => !isFine(status))
    // The entity may exist only at sources, and a source may lack it; such a 404 is part of the result
    // (4.3.6.3).
    const isAtSource = !isCreating(write.operation) && outcomes.some(({ status }) => isFine(status))
    const localBad =
      local?.problem !== undefined && !(isAtSource && local.answer.status === 404) ? local : undefined
    if (bad.length === 0 && localBad === undefined)
      return local !== undefined && local.problem === undefined
        ? local.answer
        : successOf(target, write, outcomes)
    const isNowhere = all.every((status) => status === 404)
    const isUndone = write.operation.startsWith('delete') && all.every((status) => status >= 400)
    const isSole = all.length === 1 || isNowhere || isUndone
    const failure = isSole ? soleFailure(bad, local, isNowhere) : undefined
    if (failure !== undefined) return failure
    return isAboutAttributes(write)
      ? answers.json(updateResult(target, bad, localBad), 207)
      : answers.json(operationResult(target, bad, localBad, all.some(isFine)), 207)
  }

  /** The response when all sources succeeded. */
  function successOf(target: Target, { operation }: Write, outcomes: readonly Outcome[]): Response {
    const isExtended = operation === 'upsertTemporal' && outcomes.every(({ status }) => status !== 201)
    if (!isCreating(operation) || isExtended) return answers.noContent(target.parsed)
    const path = operation === 'createEntity' ? entitiesPath : temporalPath
    return answers.created(target.parsed, `${path}/${pathSegment(target.id)}`)
  }

  function soleFailure(
    bad: readonly Outcome[],
    local: LocalOutcome | undefined,
    isNowhere: boolean,
  ): Response | undefined {
    const failed = bad.find(({ status }) => isNowhere || status !== 404) ?? bad[0]
    if (local !== undefined && (failed === undefined || local.answer.status !== 404)) return local.answer
    return failed?.error === undefined ? undefined : failureOr(failed)
  }

  /** The error of the only responsible source, with the source's own problem body if it sent one. */
  function failureOr({ problem, status, error }: PartOutcome): Response {
    if (problem !== undefined && status < 500) return answers.json(problem, status)
    return problems.answer(error!)
  }

  const problemOf = ({ error, status, registration, problem }: PartOutcome): JsonObject => {
    if (isObject(problem)) return { status, ...problem }
    const shown = error ?? new GatewayError('peer.unavailable', `${registration.id} answered ${status}`)
    return { ...problems.body(shown) }
  }

  function operationResult(
    { id }: Target,
    bad: readonly PartOutcome[],
    local: LocalOutcome | undefined,
    hasSuccess: boolean,
  ): JsonObject {
    const isDone = hasSuccess || bad.some(({ body }) => listed(body, 'success').includes(id))
    return {
      success: isDone ? [id] : [],
      errors: [
        ...(local === undefined ? [] : [{ entityId: id, error: local.problem! }]),
        ...bad.flatMap((outcome) => {
          const registrationId = outcome.registration.id
          // A source with sources of its own reports their errors in detail.
          const errors = listed(outcome.body, 'errors').flatMap((one) =>
            isObject(one) && isObject(one['error']) ? [one['error']] : [],
          )
          const all = errors.length > 0 ? errors : [problemOf(outcome)]
          return all.map((error) => ({ entityId: id, error, registrationId }))
        }),
      ],
    }
  }

  function updateResult(
    { names }: Target,
    bad: readonly Outcome[],
    local: LocalOutcome | undefined,
  ): JsonObject {
    const refused = (body: Json | undefined) => listed(body, 'notUpdated').filter(isObject)
    const reasoned = (about: readonly string[], reason: string, registrationId?: string): JsonObject[] =>
      about.map((name) => ({
        attributeName: toIri(name),
        reason,
        ...(registrationId === undefined ? {} : { registrationId }),
      }))
    const fromHere = refused(local?.problem)
    const notUpdated = [
      ...fromHere,
      ...(local !== undefined && fromHere.length === 0
        ? reasoned(names, textsOf(local.problem!['detail'] ?? '').join(' '))
        : []),
      ...bad.flatMap((outcome) => {
        const { id } = outcome.registration
        const errors = refused(outcome.body).map((one) => ({ ...one, registrationId: id }))
        return errors.length > 0
          ? errors
          : reasoned(
              outcome.attributes === 'all' ? names : [...outcome.attributes],
              outcome.error?.message ?? `${id} answered ${outcome.status}`,
              id,
            )
      }),
    ]
    const failed = new Set(notUpdated.map((one) => one['attributeName']))
    return { updated: names.map(toIri).filter((name) => !failed.has(name)), notUpdated }
  }

  return Object.freeze({
    async write(request: Distributed, write: Write): Promise<Response> {
      const { c, requester, registrations, path } = request
      const target = await targetOf(request, write)
      const { parts, local, isIncluded } = splitWrite(registrations, {
        ...target,
        operation: write.operation,
      })
      if (parts.length === 0) return write.local(c)
      const reduce = (part: Pick<WritePart, 'attributes' | 'isIncluded'>): JsonObject | undefined =>
        target.body === undefined || write.kind === 'attribute'
          ? target.body
          : bodyWith(target.body, part, target.parsed.context.expand)
      const sent = Promise.all(
        parts.map((part) => {
          const body = reduce(part)
          const request = {
            method: c.req.method,
            path,
            headers: headersOf(c, body !== undefined),
            body: body === undefined ? undefined : JSON.stringify(body),
            contexts: [target.parsed.context],
          } as const
          return sendPart(sources, requester, { part, request }).then((outcome) => ({
            ...outcome,
            attributes: part.attributes,
          }))
        }),
      )
      const here =
        local === 'none'
          ? undefined
          : await runLocal(
              request,
              write,
              reduce({ attributes: local, ...(isIncluded === undefined ? {} : { isIncluded }) }),
            )
      return answerOf(target, write, await sent, here)
    },
  })
}

/** A list member of a body; empty if missing. */
const listed = (body: Json | undefined, name: string): readonly Json[] =>
  isObject(body) ? listOf<Json>(body[name] ?? []) : []

const isCreating = (operation: SourceOperation): boolean =>
  operation === 'createEntity' || operation === 'upsertTemporal'

/** The types that a request declares or selects. */
function typesNamed(
  declared: Json | undefined,
  selected: string | undefined,
  expand: Context['expand'],
): readonly string[] | undefined {
  if (declared !== undefined) return textsOf(declared).map((name) => expand(name))
  return selected === undefined ? undefined : [...typeNamesOf(parseTypeSelection(selected, expand))]
}

const isAboutAttributes = ({ kind, operation }: Write): boolean =>
  kind === 'attribute' || operation === 'appendAttrs' || operation === 'updateEntity'

const isFine = (status: number): boolean => status < 300 && status !== 207

const typesHeld = (type: string | readonly string[] | undefined): readonly string[] | undefined =>
  type === undefined ? undefined : listOf<string>(type)

/** Headers of a forwarded request that describe its body and names. */
export function headersOf(c: HttpContext, hasBody: boolean): Record<string, string> {
  const link = headerOf(c, 'link')
  const type = hasBody ? headerOf(c, 'content-type') : undefined
  return {
    accept: 'application/json',
    ...(link === undefined ? {} : { link }),
    ...(type === undefined ? {} : { 'content-type': type }),
  }
}
