/**
 * Tests the link of an uplink end to end: whether a broker responds, accepts a test entity, returns it,
 * stores its history and deletes it. The result is described for operators. The test entity is deleted again.
 */
import type { PeerAnswer } from '#federation/peer.ts'
import type { CentralBroker } from '#uplink/centre/central-broker.ts'
import { brokerProbePath, isList, probeType } from '#uplink/connection/absence.ts'

export interface TrialStep {
  readonly step: 'reach' | 'write' | 'read' | 'history' | 'remove'
  readonly ok: boolean
  readonly words: string
}

export interface Trial {
  /**
   * works: everything. limited: some step failed, but current values are stored. fails: nothing can be sent.
   */
  readonly result: 'works' | 'limited' | 'fails'
  readonly words: string
  readonly tookMs: number
  readonly steps: readonly TrialStep[]
}

export async function tryUplink(
  centre: Pick<CentralBroker, 'request'>,
  { alias, clock }: { alias: string; clock: { now(): number; monotonic(): number } },
): Promise<Trial> {
  const began = clock.monotonic()
  const steps: TrialStep[] = []
  const id = `urn:ngsi-ld:${probeType}:${alias}`
  const entity = `/entities/${encodeURIComponent(id)}`
  const value = Math.round(clock.now())
  const observedAt = new Date(value).toISOString()
  const probe = { id, type: probeType, tried: { type: 'Property', value, observedAt } }
  /** Records the result of a step, and returns `ok`. */
  const note = (step: TrialStep['step'], ok: boolean, words: string): boolean => {
    steps.push({ step, ok, words })
    return ok
  }
  const end = (result: Trial['result'], words: string): Trial => ({
    result,
    words,
    tookMs: Math.round(clock.monotonic() - began),
    steps,
  })

  const reached = await centre.request('GET', brokerProbePath)
  const noBroker =
    troubleOf(reached) ??
    (isList(reached) ? undefined : `the address is not an NGSI-LD broker: ${saidBy(reached)}`)
  if (!note('reach', noBroker === undefined, noBroker ?? 'an NGSI-LD broker responds'))
    return end('fails', noBroker!)

  const written = await centre.request('POST', '/entityOperations/upsert?options=update', { body: [probe] })
  const notWritten = troubleOf(written) ?? (isTaken(written) ? undefined : refusedBatch(written))
  if (!note('write', notWritten === undefined, notWritten ?? 'batch writes are accepted'))
    return end('fails', notWritten!)

  const read = await centre.request('GET', entity)
  const isKept = 'status' in read && read.status === 200 && read.text.includes(String(value))
  const lost = `the test entity cannot be read back: ${saidBy(read)}`
  note('read', isKept, isKept ? 'the test entity was stored' : lost)

  const hasHistory = isKept && (await keepsHistory(centre, { id, value, observedAt }))
  if (isKept)
    note(
      'history',
      hasHistory,
      hasHistory ? 'histories are stored' : 'the broker stores no histories: only current values are sent',
    )

  const removed = await centre.request('POST', '/entityOperations/delete', { body: [id] })
  await centre.request('DELETE', `/temporal${entity}`)
  const isRemoved = isTaken(removed)
  note(
    'remove',
    isRemoved,
    isRemoved
      ? 'the test entity was deleted'
      : `the test entity ${id} could not be deleted: ${saidBy(removed)}`,
  )

  if (!isKept) return end('fails', lost)
  if (hasHistory && isRemoved) return end('works', 'current values, histories and deletions work')
  return end('limited', steps.find(({ ok }) => !ok)!.words)
}

/** Writes a value of an hour ago as history and reads it back. */
async function keepsHistory(
  centre: Pick<CentralBroker, 'request'>,
  { id, value, observedAt }: { id: string; value: number; observedAt: string },
): Promise<boolean> {
  const then = new Date(Date.parse(observedAt) - 3_600_000).toISOString()
  const tried = [{ type: 'Property', value: value - 1, observedAt: then }]
  const path = `/temporal/entities/${encodeURIComponent(id)}`
  const added = await centre.request('POST', `${path}/attrs`, { body: { tried } })
  if ('status' in added && added.status === 404)
    await centre.request('POST', '/temporal/entities', { body: { id, type: probeType, tried } })
  const stored = await centre.request('GET', path)
  return 'status' in stored && stored.status === 200 && stored.text.includes(String(value - 1))
}

/** A batch with a failed item returns 207; this one has a single item. */
const isTaken = (answer: PeerAnswer): boolean => 'status' in answer && [200, 201, 204].includes(answer.status)

function refusedBatch(answer: PeerAnswer): string {
  if ('status' in answer && [404, 405, 501].includes(answer.status))
    return `the broker does not support batch writes: ${saidBy(answer)}`
  return `the broker refused the test entity: ${saidBy(answer)}`
}

/** Describes a failure of the link; undefined if the response must be examined further. */
function troubleOf(answer: PeerAnswer): string | undefined {
  if ('failure' in answer) return wordsOfFailure(answer)
  const { status } = answer
  if (status === 401) return 'the credentials are missing or wrong (401)'
  if (status === 403) return 'the credentials lack the permission (403)'
  if (status === 404 && /tenant/i.test(answer.text))
    return `the broker does not know the tenant: ${saidBy(answer)}`
  if (status === 429) return 'the broker asks to retry later (429)'
  if (status >= 500) return `the broker fails: ${saidBy(answer)}`
  return undefined
}

const causes: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/ENOTFOUND|EAI_AGAIN/, 'DNS does not know the host name'],
  [/ECONNREFUSED/, 'connection refused: nothing listens at this address'],
  [/ENETUNREACH|EHOSTUNREACH/, 'there is no network route to the host'],
  [/ECONNRESET|socket hang up|connection was closed/, 'the server closed the connection'],
  [/not yet valid|CERT_NOT_YET_VALID/, 'the certificate is not valid yet; check the clock of this gateway'],
  [/expired|CERT_HAS_EXPIRED/, 'the certificate has expired, if the clock of this gateway is right'],
  [
    /self.signed|unable to (?:get|verify)|issuer/i,
    'the certificate was issued by an untrusted authority (see caFile)',
  ],
  [/altname|ERR_TLS_CERT/i, 'the certificate was issued for another name'],
  [
    /EPROTO|wrong version number|packet length too long/i,
    'the server does not speak TLS; use http instead of https, or another port',
  ],
]

function wordsOfFailure({ failure, reason }: Extract<PeerAnswer, { failure: string }>): string {
  if (failure === 'timeout') return `no response: ${reason}`
  const words = causes.find(([pattern]) => pattern.test(reason))?.[1] ?? 'the server cannot be reached'
  return `${words} (${reason})`
}

function saidBy(answer: PeerAnswer): string {
  if ('failure' in answer) return answer.reason
  return `${answer.status} ${answer.text.slice(0, 200)}`.trim()
}
