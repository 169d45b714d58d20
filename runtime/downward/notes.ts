/**
 * A durable list of resources this gateway created at other brokers. They are maintained while the settings
 * define them, and removed afterwards. A note is on disk before its resource is created, so none is
 * forgotten.
 */
import { hash } from 'node:crypto'
import type { Door } from '#broker/commit/door.ts'
import type { DownwardNotes } from '#store/tables/downward-notes.ts'
import type { CentreSettings } from './centre.ts'

/** A resource of this gateway at another broker. */
export interface Note {
  readonly kind: 'registration' | 'subscription'
  /** Its id at that broker. */
  readonly id: string
  /** Its broker and the means to reach it. Secrets stay in their files. */
  readonly centre: CentreSettings
  /** A hash of its definition. */
  readonly print: string
}

export const keyOf = ({ kind, id, centre }: Omit<Note, 'print'>): string =>
  [kind, centre.url, centre.tenant ?? '', id].join(' ')

/** Equal definitions have equal hashes. */
export const hashOf = (definition: unknown): string => hash('sha1', JSON.stringify(definition))

export type Notes = ReturnType<typeof createNotes>

export function createNotes({ rows, door }: { rows: DownwardNotes; door: Pick<Door, 'commit'> }) {
  const notes = new Map(rows.all().map(({ key, doc }) => [key, JSON.parse(doc) as Note]))
  return Object.freeze({
    all: (): Iterable<Note> => [...notes.values()],
    get: (key: string): Note | undefined => notes.get(key),
    async put(note: Note): Promise<void> {
      const key = keyOf(note)
      await door.commit((stage) => stage.write('downward_note.put', key, JSON.stringify(note)))
      notes.set(key, note)
    },
    async delete(note: Note): Promise<void> {
      const key = keyOf(note)
      await door.commit((stage) => stage.write('downward_note.delete', key), { isSparing: true })
      notes.delete(key)
    },
  })
}
