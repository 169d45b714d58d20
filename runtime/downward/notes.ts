/**
 * What this gateway did at other brokers, on disk: whatever is there is kept up as long as the settings want it, and
 * undone when they do not any more. A note is there before what it tells of, so nothing is forgotten there.
 */
import { hash } from 'node:crypto'
import type { Door } from '#broker/commit/door.ts'
import type { DownwardNotes } from '#store/tables/downward-notes.ts'
import type { CentreSettings } from './centre.ts'

/** Something of ours at another broker. */
export interface Note {
  readonly kind: 'registration' | 'subscription'
  /** Its id over there. */
  readonly id: string
  /** Where it is, and how to come there again. Secrets stay in their files. */
  readonly centre: CentreSettings
  /** What the settings made of it, in short. */
  readonly print: string
}

export interface Notes {
  all(): Iterable<Note>
  get(key: string): Note | undefined
  put(note: Note): Promise<void>
  delete(note: Note): Promise<void>
}

export const keyOf = ({ kind, id, centre }: Omit<Note, 'print'>): string =>
  [kind, centre.url, centre.tenant ?? '', id].join(' ')

/** Two wishes with the same print are the same. */
export const printOf = (wish: unknown): string => hash('sha1', JSON.stringify(wish))

export function createNotes({ rows, door }: { rows: DownwardNotes; door: Pick<Door, 'commit'> }): Notes {
  const notes = new Map(rows.all().map(({ key, doc }) => [key, JSON.parse(doc) as Note]))
  return Object.freeze({
    all: () => [...notes.values()],
    get: (key) => notes.get(key),
    async put(note) {
      const key = keyOf(note)
      await door.commit((stage) => stage.write('downward_note.put', key, JSON.stringify(note)))
      notes.set(key, note)
    },
    async delete(note) {
      const key = keyOf(note)
      await door.commit((stage) => stage.write('downward_note.delete', key), { isSparing: true })
      notes.delete(key)
    },
  } satisfies Notes)
}
