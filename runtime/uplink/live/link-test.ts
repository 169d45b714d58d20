/**
 * A trial of an uplink's way, from end to end: is there a broker, may we write, does it keep what is written, can it tell it
 * back, does it keep histories. What is found is told in words for a person. The entity that is written is removed again.
 */
import type { PeerAnswer } from '#federation/peer.ts'
import type { Centre } from '#uplink/centre/central-broker.ts'
import { brokerProbePath, isList, probeType } from '#uplink/connection/absence.ts'

export interface TrialStep {
  readonly step: 'reach' | 'write' | 'read' | 'history' | 'remove'
  readonly ok: boolean
  readonly words: string
}

export interface Trial {
  /** works: all of it. limited: current values only. fails: nothing can go up. */
  readonly result: 'works' | 'limited' | 'fails'
  readonly words: string
  readonly tookMs: number
  readonly steps: readonly TrialStep[]
}

export async function tryUplink(
  centre: Pick<Centre, 'request'>,
  { alias, clock }: { alias: string; clock: { now(): number; monotonic(): number } },
): Promise<Trial> {
  const began = clock.monotonic()
  const steps: TrialStep[] = []
  const id = `urn:ngsi-ld:${probeType}:${alias}`
  const entity = `/entities/${encodeURIComponent(id)}`
  const value = Math.round(clock.now())
  const observedAt = new Date(value).toISOString()
  const probe = { id, type: probeType, tried: { type: 'Property', value, observedAt } }
  /** Takes down what a step found; true when it went well. */
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
    troubleOf(reached) ?? (isList(reached) ? undefined : `it is no NGSI-LD broker: ${saidBy(reached)}`)
  if (!note('reach', noBroker === undefined, noBroker ?? 'a broker answers')) return end('fails', noBroker!)

  const written = await centre.request('POST', '/entityOperations/upsert?options=update', [probe])
  const notWritten = troubleOf(written) ?? (isTaken(written) ? undefined : refusedBatch(written))
  if (!note('write', notWritten === undefined, notWritten ?? 'it takes batches'))
    return end('fails', notWritten!)

  const read = await centre.request('GET', entity)
  const isKept = 'status' in read && read.status === 200 && read.text.includes(String(value))
  const lost = `what was written cannot be read back: ${saidBy(read)}`
  note('read', isKept, isKept ? 'what was written is there' : lost)

  const hasHistory = isKept && (await keepsHistory(centre, { id, value, observedAt }))
  if (isKept)
    note(
      'history',
      hasHistory,
      hasHistory ? 'it keeps histories' : 'it keeps no histories: current values only',
    )

  const removed = await centre.request('POST', '/entityOperations/delete', [id])
  await centre.request('DELETE', `/temporal${entity}`)
  const isRemoved = isTaken(removed)
  note('remove', isRemoved, isRemoved ? 'it deletes' : `the probe ${id} stays there: ${saidBy(removed)}`)

  if (!isKept) return end('fails', lost)
  if (hasHistory && isRemoved) return end('works', 'current values, histories and deletions go up')
  return end('limited', steps.find(({ ok }) => !ok)!.words)
}

/** A value of an hour ago is written as history and looked for. */
async function keepsHistory(
  centre: Pick<Centre, 'request'>,
  { id, value, observedAt }: { id: string; value: number; observedAt: string },
): Promise<boolean> {
  const then = new Date(Date.parse(observedAt) - 3_600_000).toISOString()
  const tried = [{ type: 'Property', value: value - 1, observedAt: then }]
  const path = `/temporal/entities/${encodeURIComponent(id)}`
  const added = await centre.request('POST', `${path}/attrs`, { tried })
  if ('status' in added && added.status === 404)
    await centre.request('POST', '/temporal/entities', { id, type: probeType, tried })
  const told = await centre.request('GET', path)
  return 'status' in told && told.status === 200 && told.text.includes(String(value - 1))
}

/** Batches answer 207 where some of their items failed; here there is one. */
const isTaken = (answer: PeerAnswer): boolean => 'status' in answer && [200, 201, 204].includes(answer.status)

function refusedBatch(answer: PeerAnswer): string {
  if ('status' in answer && [404, 405, 501].includes(answer.status))
    return `it takes no batches: ${saidBy(answer)}`
  return `it refuses what is written: ${saidBy(answer)}`
}

/** What is wrong with the way, in words; undefined where an answer came that has to be looked at. */
function troubleOf(answer: PeerAnswer): string | undefined {
  if ('failure' in answer) return wordsOfFailure(answer)
  const { status } = answer
  if (status === 401) return 'it does not know us: the credentials are missing or wrong (401)'
  if (status === 403) return 'it knows us and does not let us do this (403)'
  if (status === 404 && /tenant/i.test(answer.text)) return `it does not know the tenant: ${saidBy(answer)}`
  if (status === 429) return 'it asks us to wait (429)'
  if (status >= 500) return `it fails: ${saidBy(answer)}`
  return undefined
}

const causes: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/ENOTFOUND|EAI_AGAIN/, 'its name is not known to DNS'],
  [/ECONNREFUSED/, 'nothing listens there: the connection was refused'],
  [/ENETUNREACH|EHOSTUNREACH/, 'there is no way to it in the network'],
  [/ECONNRESET|socket hang up|connection was closed/, 'it closed the connection'],
  [
    /not yet valid|CERT_NOT_YET_VALID/,
    'its certificate is not valid yet; is the clock of this gateway right?',
  ],
  [/expired|CERT_HAS_EXPIRED/, 'its certificate has expired, if the clock of this gateway is right'],
  [
    /self.signed|unable to (?:get|verify)|issuer/i,
    'its certificate is of an authority that is not trusted here (caFile)',
  ],
  [/altname|ERR_TLS_CERT/i, 'its certificate is for another name'],
  [
    /EPROTO|wrong version number|packet length too long/i,
    'it does not speak TLS there; is it http instead of https?',
  ],
]

function wordsOfFailure({ failure, reason }: Extract<PeerAnswer, { failure: string }>): string {
  if (failure === 'timeout') return `it does not answer: ${reason}`
  const words = causes.find(([pattern]) => pattern.test(reason))?.[1] ?? 'it cannot be reached'
  return `${words} (${reason})`
}

function saidBy(answer: PeerAnswer): string {
  if ('failure' in answer) return answer.reason
  return `${answer.status} ${answer.text.slice(0, 200)}`.trim()
}
