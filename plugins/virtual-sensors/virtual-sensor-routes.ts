/**
 * HTTP routes of the virtual sensor creator. Every response is the envelope {status, success, description,
 * data}. Requests are GET or POST, with parameters in a JSON body or in the query.
 */
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import { version } from '#base/register/version.ts'
import type { Json, ModelsPort, RouteEnvironment } from '#contract'
import { parsedJson } from '#ngsi-ld/values/json.ts'
import { invalidRequest, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Contributions } from './brokers/contributions.ts'
import { linearExportOf } from './families/linear-export.ts'
import type { Creator } from './lifecycle/creator.ts'
import { wishOfDeployment, wishOfReplacement } from './lifecycle/planning.ts'
import { deploymentOf, givenIn, replacementRequest, sensorIdOf } from './requests/parameters.ts'

export interface VirtualSensorRoutesPorts {
  readonly creator: Creator
  readonly contributions: Contributions
  readonly models: Pick<ModelsPort, 'storeLinear'>
  readonly log: Log
}

type Given = ReturnType<typeof givenIn>

export function createVirtualSensorRoutes({ creator, contributions, models, log }: VirtualSensorRoutesPorts) {
  /** Stores the model of a virtual sensor as an ONNX model, after the runtime agreed with it. */
  async function exportModel(sensorId: string): Promise<Json> {
    const { id, model } = creator.modelOf(sensorId)
    if (model === undefined)
      throw new GatewayError('virtual-sensors.failed', `the virtual sensor ${id} is not trained yet`)
    const { name, sha256 } = await models.storeLinear(linearExportOf(id, model))
    return { model: name, sha256 }
  }

  const operations: Readonly<Record<string, (given: Given) => Json | Promise<Json>>> = {
    '/api/replaceBrokenSensor': (given) => creator.create(wishOfReplacement(replacementRequest(given))),
    '/api/deployVirtualSensor': (given) => creator.create(wishOfDeployment(deploymentOf(given))),
    '/api/stopVirtualSensor': async (given) => ({ stopped: await creator.stop(sensorIdOf(given)) }),
    '/api/exportModel': (given) => exportModel(sensorIdOf(given)),
    '/api/list': () => creator.list(),
    '/api/status': () => ({ running: true, version, virtualSensors: creator.status() }),
  }

  async function answer(request: Request, environment: RouteEnvironment): Promise<Json> {
    const { pathname, searchParams } = new URL(request.url)
    const path = withoutTrailingSlashes(pathname)
    const operation = Object.hasOwn(operations, path) ? operations[path] : undefined
    const body = (await environment.body()).toString()
    if (operation !== undefined) {
      if (!['GET', 'HEAD', 'POST'].includes(request.method)) throw wrongMethod(request, 'GET, HEAD, POST')
      return operation(givenIn(searchParams, body))
    }
    const [, secret] = /^\/callback\/([^/]{1,200})$/.exec(path) ?? []
    if (secret === undefined) throw notFound(`no resource at ${path}`)
    if (request.method !== 'POST') throw wrongMethod(request, 'POST')
    const json = parsedJson(body)
    if (json === undefined) throw invalidRequest('the body is not valid JSON')
    await contributions.receive(json, secret)
    return {}
  }

  return async (request: Request, environment: RouteEnvironment): Promise<Response> => {
    try {
      const data = await answer(request, environment)
      return Response.json({ status: 'ok', success: true, description: '', data })
    } catch (thrown) {
      const error = toGatewayError(thrown)
      if (error.code === 'gateway.internal')
        log.error('plugin.failed', { plugin: 'virtual-sensors', during: 'a request', error })
      const allow = error.details['allow']
      return Response.json(
        { status: 'error', success: false, description: error.message },
        { status: statusOf(error), headers: typeof allow === 'string' ? { Allow: allow } : {} },
      )
    }
  }
}

/** Only requests that are wrong themselves have another status than 200; the envelope has the outcome. */
function statusOf({ code, entry }: GatewayError): number {
  if (code.startsWith('ngsi-ld.') || code.startsWith('http.')) return entry.status
  return 200
}

const wrongMethod = ({ method }: Request, allow: string): GatewayError =>
  new GatewayError('http.method-not-allowed', `${method} is not allowed for this path`, { allow })
