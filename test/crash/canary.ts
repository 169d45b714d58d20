/**
 * The proof that the judge can fail. Facts are made up, one of each kind: acknowledgements that no gateway gave,
 * an instance twice, an older value. A judge that does not complain about each of them proves nothing.
 */
import type { GatewayProcess } from '#test/kit/process.ts'
import { currentOf, historyOf } from './evidence.ts'
import { judgeSite } from './hearing.ts'
import { type Complaint, judgeCurrent, judgeHistory } from './judge.ts'
import { nextValue, type Sent, type Stream, send, windowOf } from './ledger.ts'
import { topicPayload } from './publishers.ts'
import type { Site } from './site.ts'
import { controllerId, meterId } from './writers.ts'

interface Fact {
  readonly name: string
  /** What the complaint about it says. */
  readonly words: readonly string[]
}

/** Names of the made-up facts that went unnoticed. The site is of no use afterwards. */
export async function unnoticedFacts(site: Site, gateway: GatewayProcess): Promise<string[]> {
  const texts = await textsAboutEvidence(site, gateway.httpUrl)
  const facts = makeUp(site)
  texts.push(...(await judgeSite(site, gateway, { isAll: true, patienceMs: 3000 })).map(asText))
  const isNoticed = ({ words }: Fact): boolean =>
    texts.some((text) => words.every((word) => text.includes(word)))
  return [...facts, ...madeUpEvidence].filter((fact) => !isNoticed(fact)).map(({ name }) => name)
}

const asText = ({ fault, text }: Complaint): string => `${fault} ${text}`

function makeUp({ ledger }: Site): Fact[] {
  const acknowledge = (sent: Sent): number => {
    const message = send(sent, 1)
    message.acknowledged = true
    return message.first
  }
  /** A late value is nobody's news, so the one after it stands for both. */
  const acknowledgeNews = (one: Stream): number => {
    const value = acknowledge(one)
    return one.isLate(value) ? acknowledge(one) : value
  }
  const stream = [...ledger.streams.values()].find(({ isNotified }) => isNotified)!
  const value = acknowledgeNews(stream)
  const level = acknowledge(ledger.streams.get(meterId)!)
  const [retained, kept] = [ledger.topics[0]!, ledger.topics.at(-1)!]
  // One that clears its topic would be believed until the message comes that is really retained.
  if (topicPayload(true, acknowledge(retained)) === '') acknowledge(retained)
  const queued = acknowledge(kept)
  const item = [...ledger.entities].find(
    ([id, { acknowledged }]) => id.includes(':Item:') && acknowledged,
  )![0]
  ledger.entities.set(item, { acknowledged: null, pending: undefined, isFresh: true })
  const nobody = 'urn:ngsi-ld:Item:nobody'
  ledger.entities.set(nobody, { acknowledged: { number: 0 }, pending: undefined, isFresh: true })
  ledger.entities.set(controllerId, { acknowledged: { setpoint: -1 }, pending: undefined, isFresh: true })
  return [
    { name: 'an observation', words: ['lost', stream.entity, `does not hold ${value}`] },
    { name: 'a current value', words: ['stale', stream.entity, `not ${value}`] },
    { name: 'a notification', words: ['lost', stream.entity, `never told ${value}`] },
    { name: 'an observation by HTTP', words: ['lost', meterId, `does not hold ${level}`] },
    { name: 'a retained message', words: [retained.name, 'retains'] },
    { name: 'a message for a session', words: ['lost', kept.name, `never brought ${queued}`] },
    { name: 'an entity', words: ['lost', nobody] },
    { name: 'an attribute', words: ['stale', controllerId, '"setpoint":-1'] },
    { name: 'a deletion', words: ['stale', item, 'not null'] },
  ]
}

const madeUpEvidence: readonly Fact[] = [
  { name: 'an instance twice', words: ['duplicated'] },
  { name: 'an instance nobody sent', words: ['invented', 'holds'] },
  { name: 'an older value', words: ['stale'] },
]

/** What the judge says of true evidence with something added to it. */
async function textsAboutEvidence({ ledger }: Site, url: string): Promise<string[]> {
  const stream = [...ledger.streams.values()][0]!
  const instances = await historyOf(url, stream, windowOf(stream, 0, nextValue(stream)))
  const current = (await currentOf(url, stream))!
  const older = { value: 0, atMs: stream.timeOf(0) }
  const invented = { value: current.value, atMs: current.atMs + 1 }
  return [
    ...judgeHistory(stream, 0, [...instances, instances[0]!]),
    ...judgeHistory(stream, 0, [...instances, invented]),
    ...judgeCurrent(stream, older),
  ].map(asText)
}
