/**
 * Routes for operators: devices awaiting acceptance, frames that could not be decoded, topics that no bridge
 * reads, and the decisions about them. Devices belong to the default tenant. These routes are not part of
 * NGSI-LD.
 */

import { isUtf8 } from 'node:buffer'
import { limits } from '#base/limits/limits.ts'
import type { Frame, Reading } from '#contract'
import type { ApiPorts } from '#http/request/api-ports.ts'
import { type Bodies, type HttpContext, parseJson } from '#http/request/body.ts'
import type { ApiRequest } from '#http/request/request.ts'
import type { Choice, ChoiceKind } from '#intake/choices.ts'
import type { AcceptRequest, Devices, DeviceView, ListedTopic } from '#intake/devices.ts'
import type { UndecodedGroup, WaitingDevice } from '#intake/survey.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound, notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export const devicesPath = '/selvedge/v1/devices'

export interface DeviceRoutePorts extends ApiPorts {
  readonly bodies: Pick<Bodies, 'raw'>
  readonly devices: Devices
}

const none: ReadonlySet<string> = new Set()
const withKind: ReadonlySet<string> = new Set(['kind'])

export function createDeviceTable({ requests, answers, bodies, devices }: DeviceRoutePorts) {
  const nameOf = (c: HttpContext): string => c.req.param('name') ?? ''
  async function read(c: HttpContext, parameters = none): Promise<ApiRequest> {
    const request = await requests.read(c, parameters)
    if (request.tenant !== '') throw notSupported('NGSILD-Tenant: devices belong to the default tenant')
    return request
  }
  const unknown = (c: HttpContext) =>
    notFound(`no device or topic ${nameOf(c)} waits, and none of that name was decided on`)

  return {
    [devicesPath]: {
      async GET(c: HttpContext) {
        const request = await read(c)
        const { waiting, undecoded, unclaimed, choices } = await devices.list()
        return answers.data(request, {
          waiting: listView(waiting, waitingView),
          undecoded: listView(undecoded, undecodedView),
          unclaimed: listView(unclaimed, topicView),
          choices: listView(choices, choiceView),
        })
      },
    },
    [`${devicesPath}/:name`]: {
      async GET(c: HttpContext) {
        const request = await read(c)
        const shown = await devices.show(nameOf(c))
        if (shown === undefined) throw unknown(c)
        return answers.data(request, shownView(shown))
      },
      async DELETE(c: HttpContext) {
        const request = await read(c, withKind)
        if (!(await devices.forget(nameOf(c), kindOf(request.parameters.get('kind') ?? undefined))))
          throw unknown(c)
        return answers.noContent(request)
      },
    },
    [`${devicesPath}/:name/accept`]: {
      async POST(c: HttpContext) {
        const request = await read(c)
        return answers.data(request, await devices.accept(nameOf(c), choiceOf(await bodies.raw(c))))
      },
    },
    [`${devicesPath}/:name/ignore`]: {
      async POST(c: HttpContext) {
        const request = await read(c)
        return answers.data(request, await devices.ignore(nameOf(c), choiceOf(await bodies.raw(c)).kind))
      },
    },
  }
}

/** The body is optional. */
function choiceOf(body: Buffer): AcceptRequest {
  if (body.length === 0) return {}
  const choice = parseJson(body)
  if (!isObject(choice)) throw badRequestData('the body must be an object of kind, bridge and source')
  for (const name of Object.keys(choice))
    if (!['kind', 'bridge', 'source'].includes(name))
      throw badRequestData('expected kind, bridge or source', name)
  const { bridge, source } = choice
  if (bridge !== undefined && typeof bridge !== 'string') throw badRequestData('expected a text', 'bridge')
  if (source !== undefined && !isObject(source)) throw badRequestData('expected an object', 'source')
  return { kind: kindOf(choice['kind']), bridge, source }
}

function kindOf(kind: unknown): ChoiceKind | undefined {
  if (kind === undefined || kind === 'device' || kind === 'topic') return kind
  throw badRequestData('expected device or topic', 'kind')
}

const listView = <T>(all: readonly T[], view: (one: T) => object) => ({
  count: all.length,
  items: all.slice(0, limits.devicesListedMax.value).map(view),
})

const seen = ({ firstSeenAt, lastSeenAt }: { firstSeenAt: number; lastSeenAt: number }) => ({
  firstSeenAt: msToDateTime(firstSeenAt),
  lastSeenAt: msToDateTime(lastSeenAt),
})

const waitingView = (one: WaitingDevice) => ({
  device: one.device,
  topic: one.topic,
  bridge: one.bridge,
  frames: one.frames,
  ...seen(one),
  readings: one.readings.map(readingView),
})

const undecodedView = (one: UndecodedGroup) => ({
  topic: one.topic,
  bridge: one.bridge,
  reason: one.reason,
  frames: one.frames,
  ...seen(one),
  ...payloadView(one.lastPayload, one.lastBytes),
})

const topicView = (one: ListedTopic) => ({
  topic: one.topic,
  frames: one.count,
  held: one.frames.length,
  ...seen(one),
  source: one.source,
  ...payloadView(one.lastPayload, one.lastBytes),
  readableBy: one.proposal?.bridge,
  proposal: one.proposal,
})

const choiceView = ({ kind, name, decision, at, mapping }: Choice) => ({
  kind,
  name,
  decision,
  at: msToDateTime(at),
  ...mapping,
})

const shownView = ({ waiting, undecoded, unclaimed, choices, preview }: DeviceView) => ({
  waiting: waiting && waitingView(waiting),
  undecoded: undecoded.map(undecodedView),
  unclaimed: unclaimed && {
    ...topicView(unclaimed),
    newest: unclaimed.frames.slice(-newestShown).map(frameView),
  },
  preview: preview && { ...preview, readings: preview.readings.slice(0, readingsShown).map(readingView) },
  choices: choices.map(choiceView),
})

const newestShown = 10
const readingsShown = 100

const frameView = ({ receivedAt, payload }: Frame) => ({
  receivedAt: msToDateTime(receivedAt),
  ...payloadView(payload.subarray(0, limits.payloadShownBytesMax.value), payload.length),
})

const readingView = ({ observedAt, ...reading }: Reading) => ({
  ...reading,
  ...(observedAt !== undefined &&
    Number.isSafeInteger(observedAt) && { observedAt: msToDateTime(observedAt) }),
})

/** The first bytes of a payload: as text if they are UTF-8, otherwise in hexadecimal. */
function payloadView(payload: Uint8Array, bytes: number) {
  const isCut = payload.length < bytes
  const whole = isCut ? withoutHalf(payload) : payload
  const shown = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength)
  const isText = isUtf8(shown)
  return {
    payload: isText ? shown.toString('utf8') : shown.toString('hex'),
    ...(isText ? {} : { payloadEncoding: 'hex' }),
    bytes,
  }
}

/** Removes an incomplete UTF-8 character at the end. */
function withoutHalf(payload: Uint8Array): Uint8Array {
  let end = payload.length
  while (end > payload.length - 3 && end > 0 && (payload[end - 1]! & 0xc0) === 0x80) end--
  return end > 0 && payload[end - 1]! >= 0xc0 ? payload.subarray(0, end - 1) : payload
}
