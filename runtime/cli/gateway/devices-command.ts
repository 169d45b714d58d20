/**
 * `selvedge devices ls|show|accept|ignore|forget` (default ls): shows waiting devices, rejected frames and
 * topics that no bridge reads, of a running gateway. It also sends the operator's decisions about them.
 */

import { GatewayError } from '#base/register/errors.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { actionOf, type GivenOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { GatewayResponse } from './gateway-client.ts'
import { findGateway, type RunningGateway, refusalOf } from './running-gateway.ts'

interface Sighting {
  readonly topic: string
  readonly bridge?: string
  readonly frames: number
  readonly lastSeenAt: string
  readonly payload?: string
  readonly payloadEncoding?: string
  readonly bytes?: number
}

interface Reading {
  readonly device: string
  readonly field: string
  readonly value: unknown
  readonly unitCode?: string
  readonly unitText?: string
  readonly observedAt?: string
}

interface Waiting extends Sighting {
  readonly device: string
  readonly readings: readonly Reading[]
}

interface Unclaimed extends Sighting {
  readonly held: number
  readonly source?: string
  readonly readableBy?: string
  readonly proposal?: { readonly topic: string; readonly source?: object }
}

interface Choice {
  readonly kind: string
  readonly name: string
  readonly decision: string
  readonly bridge?: string
  readonly source?: object
}

interface Listed<T> {
  readonly count: number
  readonly items: readonly T[]
}

interface Lists {
  readonly waiting: Listed<Waiting>
  readonly undecoded: Listed<Sighting & { readonly reason: string }>
  readonly unclaimed: Listed<Unclaimed>
  readonly choices: Listed<Choice>
}

interface Shown {
  readonly waiting?: Waiting
  readonly undecoded: readonly (Sighting & { readonly reason: string })[]
  readonly unclaimed?: Unclaimed & {
    readonly newest: readonly (Sighting & { readonly receivedAt: string })[]
  }
  readonly preview?: {
    readonly readings: readonly Reading[]
    readonly problems: readonly { reason: string }[]
  }
  readonly choices: readonly Choice[]
}

interface Accepted {
  readonly kind: string
  readonly name: string
  readonly mapping?: { readonly bridge: string; readonly source?: object }
  readonly devices: readonly string[]
  readonly released: number
}

const path = '/selvedge/v1/devices'
const actions = ['ls', 'show', 'accept', 'ignore', 'forget'] as const

export async function devices(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [word = 'ls', name] = given.words
  const action = actionOf(word, actions)
  if ((action === 'ls') !== (name === undefined))
    throw new GatewayError(
      'cli.usage',
      action === 'ls' ? 'ls takes no name' : `${action} needs a device or topic`,
    )
  const body = action === 'accept' ? acceptOptions(given) : kindOf(given)
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const gateway = await findGateway(given, loaded.settings)
  const done = await perform(gateway, action, { name: name ?? '', body })
  if (given.has('json')) terminal.out(`${JSON.stringify(done.answer, undefined, 2)}\n`)
  else terminal.out(done.text)
  return exitCodes.ok
}

/** The body of an accept request: the mapping of the topic, as given by options. */
function acceptOptions(given: GivenOptions): object {
  const source: Record<string, unknown> = { ...sourceText(given) }
  const device = given.text('device')
  if (device !== undefined) source['deviceName'] = device
  const zone = given.text('time-zone')
  if (zone !== undefined) source['timeZone'] = zone
  const fields = given.all('field-map').map(fieldOf)
  if (fields.length > 0) source['fields'] = fields
  const bridge = given.text('bridge')
  return {
    ...kindOf(given),
    ...(bridge !== undefined && { bridge }),
    ...(Object.keys(source).length > 0 && { source }),
  }
}

function sourceText(given: GivenOptions): object {
  const text = given.text('source')
  if (text === undefined) return {}
  const source = parsedJson(text)
  if (isObject(source)) return source
  throw new GatewayError('cli.usage', '--source expects a JSON object')
}

/** `PATH=NAME` or `PATH=NAME:UNIT`, split at the last = and the first : after it. */
function fieldOf(text: string): object {
  const at = text.lastIndexOf('=')
  const [name = '', ...unit] = text.slice(at + 1).split(':')
  if (at < 1 || name === '')
    throw new GatewayError('cli.usage', `--field-map expects PATH=NAME or PATH=NAME:UNIT, got ${text}`)
  return { path: text.slice(0, at), name, ...(unit.length > 0 && { unit: unit.join(':') }) }
}

function kindOf(given: GivenOptions): { kind?: string } {
  const kind = given.text('kind')
  if (kind === undefined) return {}
  if (kind === 'device' || kind === 'topic') return { kind }
  throw new GatewayError('cli.usage', `--kind expects device or topic, got ${kind}`)
}

async function perform(
  gateway: RunningGateway,
  action: (typeof actions)[number],
  { name, body }: { name: string; body: { kind?: string } },
): Promise<{ answer: unknown; text: string }> {
  const at = `${path}/${encodeURIComponent(name)}`
  if (action === 'forget') {
    const answer = await gateway.request(body.kind === undefined ? at : `${at}?kind=${body.kind}`, {
      method: 'DELETE',
    })
    if (answer.status !== 204) throw refusedOf(answer, name)
    return { answer: { forgotten: name }, text: `forgotten: ${printable(name)}\n` }
  }
  const isPost = action === 'accept' || action === 'ignore'
  const answer = await (isPost
    ? gateway.request(`${at}/${action}`, { method: 'POST', body })
    : gateway.request(action === 'ls' ? path : at))
  if (answer.status !== 200) throw refusedOf(answer, action === 'ls' ? 'listing the devices' : name)
  const result = JSON.parse(answer.text) as never
  return { answer: result, text: textOf[action](result) }
}

/** The error of a rejected request, with names of members replaced by the options that set them. */
function refusedOf(answer: GatewayResponse, name: string): GatewayError {
  const { code, message, details } = refusalOf(answer, name)
  const text = optionOf.reduce((all, [member, option]) => all.replaceAll(member, option), message)
  return new GatewayError(code, text, details)
}

const optionOf = [
  ['"bridge"', '--bridge'],
  ['"source"', '--source'],
  ['"source.deviceName"', '--device'],
  ['"kind"', '--kind'],
] as const

const textOf = {
  ls: listText,
  show: shownText,
  accept: acceptedText,
  ignore: ({ kind, name, dropped }: { kind: string; name: string; dropped: number }): string =>
    `ignored ${kind} ${printable(name)}; ${heldFrames(dropped)} dropped\n`,
}

function listText({ waiting, undecoded, unclaimed, choices }: Lists): string {
  const parts = [
    ...part('Devices that wait to be accepted', waiting, (one) => [
      `${printable(one.device)}  ${seen(one)}`,
      one.readings.map(readingText).join(', '),
    ]),
    ...part('Topics that no bridge reads', unclaimed, (one) => [
      `${printable(one.topic)}  ${seen(one)}; ${readable(one)}`,
      payloadText(one),
    ]),
    ...part('Rejected frames', undecoded, (one) => [
      `${printable(one.topic)}  ${seen(one)}; ${printable(one.reason)}`,
      payloadText(one),
    ]),
    ...part('Decisions', choices, (one) => [choiceText(one)]),
  ]
  return parts.length === 0
    ? 'No device waits, and a bridge reads every published topic.\n'
    : parts.join('\n')
}

function part<T>(title: string, { count, items }: Listed<T>, lines: (one: T) => readonly string[]): string[] {
  if (count === 0) return []
  const rows = items.map((one) =>
    lines(one)
      .filter(Boolean)
      .map((line, at) => `${at === 0 ? '  ' : '    '}${line}\n`)
      .join(''),
  )
  const rest = count > items.length ? `  and ${count - items.length} more\n` : ''
  return [`${title}:\n${rows.join('')}${rest}`]
}

const seen = ({ frames, lastSeenAt }: Sighting): string =>
  `${frames} ${frames === 1 ? 'frame' : 'frames'}, last ${lastSeenAt}`

const readable = ({ readableBy, proposal }: Unclaimed): string =>
  readableBy === undefined
    ? 'no bridge can read it'
    : `the bridge ${readableBy} could read it${proposal === undefined ? '' : ` as ${printable(proposal.topic)}`}`

const payloadText = ({ payload, payloadEncoding, bytes = 0 }: Sighting): string => {
  if (payload === undefined) return ''
  const isCut = (payloadEncoding === 'hex' ? payload.length / 2 : Buffer.byteLength(payload)) < bytes
  return `${payloadEncoding === 'hex' ? 'hex ' : ''}${printable(payload)}${isCut ? ` ... (${bytes} bytes)` : ''}`
}

const readingText = ({ field, value, unitCode, unitText }: Reading): string =>
  [printable(field), printable(JSON.stringify(value)), printable(unitCode ?? unitText ?? '')]
    .filter(Boolean)
    .join(' ')

const choiceText = ({ kind, name, decision, bridge, source }: Choice): string =>
  [
    `${decision} ${kind} ${printable(name)}`,
    ...(bridge === undefined ? [] : [`bridge ${bridge}`]),
    ...(source === undefined ? [] : [printable(JSON.stringify(source))]),
  ].join('  ')

function shownText({ waiting, undecoded, unclaimed, preview, choices }: Shown): string {
  const one = <T>(item: T | undefined): Listed<T> => listed(item === undefined ? [] : [item])
  const lists = listText({
    waiting: one(waiting),
    undecoded: listed(undecoded),
    unclaimed: one(unclaimed),
    choices: listed(choices),
  })
  const proposal = unclaimed?.proposal
  return [
    lists,
    ...(unclaimed === undefined
      ? []
      : part('Newest frames', listed(unclaimed.newest), (frame) => [
          `${frame.receivedAt}  ${payloadText(frame)}`,
        ])),
    ...(proposal === undefined
      ? []
      : [
          `Proposed source:\n  ${printable(JSON.stringify({ topic: proposal.topic, ...proposal.source }))}\n`,
        ]),
    ...(preview === undefined
      ? []
      : part('Resulting readings', listed(preview.readings), (reading) => [
          `${printable(reading.device)}  ${readingText(reading)}`,
        ])),
    ...(preview === undefined
      ? []
      : part('Resulting problems', listed(preview.problems), ({ reason }) => [printable(reason)])),
  ].join('\n')
}

const listed = <T>(items: readonly T[]): Listed<T> => ({ count: items.length, items })

function acceptedText({ kind, name, mapping, devices: names, released }: Accepted): string {
  const how = mapping === undefined ? '' : ` to the bridge ${mapping.bridge}`
  const first =
    kind === 'device' ? `accepted device ${printable(name)}` : `mapped topic ${printable(name)}${how}`
  const also =
    kind === 'topic' && names.length > 0 ? `; accepted devices ${names.map(printable).join(', ')}` : ''
  const unseen = kind === 'device' && released === 0 ? noneWaited : ''
  return `${first}${also}; ${heldFrames(released)} stored\n${unseen}${zoneText(mapping?.source)}`
}

/** A name that was misspelt is accepted too, for a device that may come. */
const noneWaited =
  '  no frame of it waited: its next ones are stored; selvedge devices ls shows which devices wait\n'

/**
 * A time zone has no effect if no time is found, which only later frames show; so the text says which times
 * are read.
 */
const zoneText = ({ timeZone, time }: { timeZone?: unknown; time?: unknown } = {}): string =>
  typeof timeZone !== 'string' || time !== undefined
    ? ''
    : `  ${timeZone} applies to times of a recognized firmware and of members time, timestamp, datetime, ts or date;\n  name another member by --source '{"time":{"path":"PATH","format":"iso"}}'\n`

const heldFrames = (count: number): string => `${count} held ${count === 1 ? 'frame' : 'frames'}`

/** Text from devices, with escaped control and formatting characters, which could manipulate a terminal. */
const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`)
