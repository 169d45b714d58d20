/** The streams of observation entities, whichever is known first. */
import { afterEach, expect, it } from 'vitest'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createPlacedObservations } from './placed-observations.ts'

afterEach(restoreLimits)

interface Known {
  readonly id: string
}

function open() {
  const streams = new Map<string, Known>()
  const moves: (readonly [string, string, string | undefined])[] = []
  const placed = createPlacedObservations<Known>({
    streamOf: (id) => streams.get(id),
    describedBy: (id) => (id === 'sensor' ? [...streams.values()] : []),
    moved: (id, stream, before) => moves.push([id, stream.id, before?.id]),
  })
  const add = (id: string): void => {
    streams.set(id, { id })
    placed.takeWaiting(streams.get(id)!)
  }
  return { placed, moves, add }
}

const observation = (id: string, name: string, object: string): Entity =>
  ({ id, type: iotStream.StreamObservation, [name]: { type: 'Relationship', object } }) as unknown as Entity

it('places an observation entity at the stream that it names, also if that comes later', () => {
  const { placed, moves, add } = open()
  placed.take(observation('o', iotStream.belongsTo, 's'))
  expect([placed.of('o'), placed.unplaced()]).toEqual([undefined, 1])
  add('s')
  expect([placed.of('o')?.id, placed.unplaced()]).toEqual(['s', 0])
  add('t')
  placed.take(observation('o', iotStream.belongsTo, 't'))
  placed.take(observation('o', iotStream.belongsTo, 't'))
  expect(moves).toEqual([
    ['o', 's', undefined],
    ['o', 't', 's'],
  ])
})

it('places one that names no stream at that of its Sensor', () => {
  const { placed, add } = open()
  add('s')
  placed.take(observation('o', sosa.madeBySensor, 'sensor'))
  expect(placed.of('o')?.id).toBe('s')
  placed.delete('o')
  expect(placed.of('o')).toBeUndefined()
})

it('keeps a number of those without a stream', () => {
  setLimit('clientUnplacedMax', 2)
  const { placed, add } = open()
  for (const id of ['a', 'b', 'c']) placed.take(observation(id, iotStream.belongsTo, 's'))
  add('s')
  expect(['a', 'b', 'c'].map((id) => placed.of(id)?.id)).toEqual([undefined, 's', 's'])
})
