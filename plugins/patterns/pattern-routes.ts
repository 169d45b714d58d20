/**
 * HTTP routes of the pattern extractor: models, notifications and its state. Formats are those of the
 * original component: lists as `{count, result}`, errors as `{status, message}`.
 */
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Json, RouteEnvironment } from '#contract'
import { parsedJson } from '#ngsi-ld/values/json.ts'
import { invalidRequest, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { isPickle, pickled } from '#plugins/patterns/registrations/model-document.ts'
import type { ModelRegistry } from '#plugins/patterns/registrations/model-registry.ts'
import type { Notifications } from '#plugins/patterns/registrations/notifications.ts'
import type { Trainings } from '#plugins/patterns/training/trainings.ts'

export interface PatternRoutesPorts {
  readonly models: ModelRegistry
  readonly notifications: Notifications
  readonly trainings: Trainings
  readonly status: () => object
}

export function createPatternRoutes({ models, notifications, trainings, status }: PatternRoutesPorts) {
  async function collection(request: Request, environment: RouteEnvironment): Promise<Response> {
    if (request.method !== 'POST') {
      const result = models.all()
      return Response.json({ count: result.length, result })
    }
    const document = await models.register(await modelIn(environment))
    const { id } = document as { readonly id: string }
    return Response.json(document, { status: 201, headers: { Location: `/api/model/${id}` } })
  }

  async function one(request: Request, id: string): Promise<Response> {
    if (request.method === 'DELETE') {
      if (await models.remove(id)) return new Response(null, { status: 204 })
    } else {
      const document = models.get(id)
      if (document !== undefined) return Response.json(document)
    }
    throw notFound(`no model with id ${id}`)
  }

  async function training(
    request: Request,
    id: string | undefined,
    environment: RouteEnvironment,
  ): Promise<Response> {
    if (request.method === 'POST') {
      const started = trainings.start(await modelIn(environment))
      return Response.json(started, {
        status: 202,
        headers: { Location: `/api/model/train/${started.id}` },
      })
    }
    if (id === undefined) {
      const result = trainings.all()
      return Response.json({ count: result.length, result })
    }
    if (request.method === 'DELETE') {
      if (trainings.remove(id)) return new Response(null, { status: 204 })
    } else {
      const found = trainings.get(id)
      if (found !== undefined) return Response.json(found)
    }
    throw notFound(`no training with id ${id}`)
  }

  async function route(request: Request, path: string, environment: RouteEnvironment): Promise<Response> {
    if (path === '' || path === '/status') {
      checkMethod(request, ['GET', 'HEAD'])
      return Response.json(status())
    }
    if (path === '/api/model') {
      checkMethod(request, ['GET', 'HEAD', 'POST'])
      return collection(request, environment)
    }
    const [isTraining, trainingId] = /^\/api\/model\/train(?:\/([0-9a-f]{1,64}))?$/.exec(path) ?? []
    if (isTraining !== undefined) {
      checkMethod(request, ['GET', 'HEAD', trainingId === undefined ? 'POST' : 'DELETE'])
      return training(request, trainingId, environment)
    }
    const [, id] = /^\/api\/model\/([0-9a-zA-Z_-]{1,64})$/.exec(path) ?? []
    if (id !== undefined) {
      checkMethod(request, ['GET', 'HEAD', 'DELETE'])
      return one(request, id)
    }
    const [, purpose] = /^\/api\/notification\/(stream|observation)$/.exec(path) ?? []
    if (purpose !== undefined) {
      checkMethod(request, ['POST'])
      const body = await jsonIn(environment)
      await (purpose === 'stream' ? notifications.streams(body) : notifications.observations(body))
      return Response.json({})
    }
    throw notFound(`no resource at ${path}`)
  }

  return async (request: Request, environment: RouteEnvironment): Promise<Response> => {
    const path = withoutTrailingSlashes(new URL(request.url).pathname)
    try {
      return await route(request, path, environment)
    } catch (thrown) {
      const error = toGatewayError(thrown)
      if (error.code === 'gateway.internal') throw error
      const { status: code } = error.entry
      const allow = error.details['allow']
      return Response.json(
        { status: code, message: error.message },
        { status: code, headers: typeof allow === 'string' ? { Allow: allow } : {} },
      )
    }
  }
}

function checkMethod({ method }: Request, allowed: readonly string[]): void {
  if (allowed.includes(method)) return
  throw new GatewayError('http.method-not-allowed', `${method} is not allowed for this path`, {
    allow: allowed.join(', '),
  })
}

async function modelIn(environment: RouteEnvironment): Promise<Json> {
  if (isPickle(await environment.body())) throw pickled()
  return jsonIn(environment)
}

async function jsonIn(environment: RouteEnvironment): Promise<Json> {
  const body = await environment.body()
  const json = parsedJson(body.toString())
  if (json === undefined) throw invalidRequest('the body is not valid JSON')
  return json
}
