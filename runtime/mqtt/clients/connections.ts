/**
 * CONNECT (MQTT 3.1.1 and 5, section 3.1): authenticates the client, opens its session, and closes an older
 * connection with the same client identifier. CONNACK is sent when everything it promises is on disk.
 */
import { randomUUID } from 'node:crypto'
import { generate, type IConnackPacket } from 'mqtt-packet'
import { limits } from '#base/limits/limits.ts'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { Receipts } from '#mqtt/publish/receipts.ts'
import type { Presence, Presences } from '#mqtt/sessions/presence.ts'
import type { Session } from '#mqtt/sessions/session-queue.ts'
import type { Sessions } from '#mqtt/sessions/sessions.ts'
import type { Wills } from '#mqtt/sessions/wills.ts'
import { fault, type PacketFault, reasons } from '#mqtt/wire/reasons.ts'
import { topicProblem } from '#mqtt/wire/topics.ts'
import { type ConnectRequest, readConnect } from './control-packets.ts'

/** The identity that a client states in CONNECT. */
export interface Credentials {
  readonly clientId: string
  readonly username: string | undefined
  readonly password: Uint8Array | undefined
  readonly remoteAddress: string
}

export interface ConnectionsPorts {
  readonly presences: Presences
  readonly sessions: Sessions
  readonly receipts: Receipts
  readonly wills: Wills
  /** Longest session expiry interval, ms; sessions of MQTT 3.1.1 have it. */
  readonly sessionAgeMs: number
  readonly authenticate: (credentials: Credentials) => boolean | Promise<boolean>
}

/**
 * The reason for refusing a CONNECT: a reason code of MQTT 5, and the return code of 3.1.1 if there is one.
 */
interface Refusal extends PacketFault {
  readonly returnCode?: number
}

/** CONNACK return codes (MQTT 3.1.1, table 3.1). */
const returnCodes = { identifierRejected: 2, serverUnavailable: 3, badCredentials: 4 } as const

export function createConnections(ports: ConnectionsPorts) {
  const { presences, sessions, receipts, wills, authenticate } = ports
  let isStopped = false

  async function check(request: ConnectRequest, link: Link): Promise<Refusal | undefined> {
    const { clientId, username, password } = request
    const problem = connectProblem(request)
    if (problem !== undefined) return problem
    if (isStopped) return unavailable(reasons.serverShuttingDown, 'the gateway is shutting down')
    if (keepsSession(request) && sessions.get(clientId) === undefined && sessions.isFull()) {
      return unavailable(reasons.quotaExceeded, 'the maximum number of sessions is reached')
    }
    try {
      const { remoteAddress } = link
      if (await authenticate({ clientId, username, password, remoteAddress })) return undefined
    } catch (error) {
      return unavailable(
        reasons.serverUnavailable,
        `the login cannot be checked: ${(error as Error).message}`,
      )
    }
    const reason = 'bad user name or password'
    return { code: reasons.badUserNameOrPassword, reason, returnCode: returnCodes.badCredentials }
  }

  /**
   * Brings a client's session into the state that CONNECT requests; undefined when the connection was closed
   * meanwhile.
   */
  async function prepare(
    request: ConnectRequest,
    { link, client }: Presence,
  ): Promise<{ session: Session | undefined; isPresent: boolean } | undefined> {
    if (request.clean) {
      receipts.clear(client)
      await sessions.end(client)
    }
    // A newer connection with the same identifier may have created a session of its own.
    if (link.isClosed()) return undefined
    const isPresent = sessions.isPresent(client)
    const session = isPresent || keepsSession(request) ? sessions.begin(client) : undefined
    if (session === undefined) receipts.clear(client)
    return { session, isPresent }
  }

  async function admit(request: ConnectRequest, link: Link): Promise<void> {
    const client = request.clientId === '' ? `selvedge-${randomUUID()}` : request.clientId
    presences.ofClient(client)?.link.close(reasons.sessionTakenOver)
    const expirySeconds = Math.min(
      request.expirySeconds ?? Number.POSITIVE_INFINITY,
      ports.sessionAgeMs / 1000,
    )
    const presence: Presence = {
      link,
      client,
      session: undefined,
      expiryMs: expirySeconds * 1000,
      endsWithConnection: expirySeconds === 0,
      filters: new Map(),
      will: undefined,
    }
    presences.add(presence)
    wills.clientReturned(client, request.clean)
    const prepared = await prepare(request, presence)
    if (prepared === undefined) return
    const { session, isPresent } = prepared
    if (request.will !== undefined) {
      presence.will = { ...request.will, client }
      await wills.put(presence.will)
      if (link.isClosed()) return
    }
    presence.session = session
    for (const [filter, grant] of session?.filters ?? []) presence.filters.set(filter, grant)
    link.write(connack(request, { client, isPresent, expirySeconds }))
    link.open(client)
    if (session !== undefined) sessions.open(session, presence)
  }

  function refuse(link: Link, { code, reason, returnCode }: Refusal, isFive: boolean): void {
    const packet = { cmd: 'connack', sessionPresent: false } as const
    if (isFive) link.write(generate({ ...packet, reasonCode: code }, { protocolVersion: 5 }))
    else if (returnCode !== undefined) link.write(generate({ ...packet, returnCode }))
    link.fail(reason)
  }

  return Object.freeze({
    /** Answers a CONNECT. */
    async connect(link: Link, bytes: Buffer): Promise<void> {
      const request = readConnect(bytes)
      if ('reason' in request) {
        refuse(link, request, speaksFive(bytes))
        return
      }
      link.greet(request.terms)
      const refusal = await check(request, link)
      if (link.isClosed()) return
      if (refusal !== undefined) refuse(link, refusal, request.terms.isFive)
      else await admit(request, link)
    },
    /** Refuses all further connections. */
    stop(): void {
      isStopped = true
    },
  })
}

/** True when an unreadable CONNECT is of MQTT 5: its protocol name and level follow the fixed header. */
const speaksFive = (bytes: Buffer): boolean => bytes.subarray(2, 12).includes('MQTT\u0005')

/** True when the session outlives the connection. */
const keepsSession = ({ clean, expirySeconds }: ConnectRequest): boolean =>
  expirySeconds === undefined ? !clean : expirySeconds > 0

const unavailable = (code: number, reason: string): Refusal => {
  return { code, reason, returnCode: returnCodes.serverUnavailable }
}

/** Validates the content of a CONNECT; undefined when it is valid. */
function connectProblem({ clientId, clean, terms, will, usesMethod }: ConnectRequest): Refusal | undefined {
  if (usesMethod) return fault(reasons.badAuthenticationMethod, 'enhanced authentication is not supported')
  if (isRefusedId(clientId, clean || terms.isFive)) {
    const reason = 'the client identifier is not valid'
    return { code: reasons.clientIdentifierNotValid, reason, returnCode: returnCodes.identifierRejected }
  }
  const problem = will === undefined ? undefined : topicProblem(will.message.topic)
  return problem === undefined ? undefined : fault(reasons.topicNameInvalid, `will: ${problem}`)
}

/**
 * True for an invalid client identifier: [MQTT-3.1.3-8], [MQTT-1.5.3-1], [MQTT-1.5.3-2], or longer than the
 * limit.
 */
function isRefusedId(clientId: string, mayBeEmpty: boolean): boolean {
  if (clientId === '') return !mayBeEmpty
  return /[\u0000\uFFFD]/.test(clientId) || Buffer.byteLength(clientId) > limits.mqttClientIdBytesMax.value
}

/** The accepting CONNACK; for MQTT 5 also the features that this broker lacks, and its limits. */
function connack(
  { terms, clientId, expirySeconds: requested }: ConnectRequest,
  { client, isPresent, expirySeconds }: { client: string; isPresent: boolean; expirySeconds: number },
): Buffer {
  const packet: IConnackPacket = { cmd: 'connack', sessionPresent: isPresent }
  if (!terms.isFive) return generate({ ...packet, returnCode: 0 })
  const properties: IConnackPacket['properties'] = {
    receiveMaximum: limits.mqttReceiveMax.value,
    maximumPacketSize: limits.mqttPacketBytesMax.value,
    topicAliasMaximum: limits.topicAliasesMax.value,
    sharedSubscriptionAvailable: false,
    ...(clientId === '' ? { assignedClientIdentifier: client } : {}),
    ...(requested === expirySeconds ? {} : { sessionExpiryInterval: expirySeconds }),
  }
  return generate({ ...packet, reasonCode: 0, properties }, { protocolVersion: 5 })
}
