/**
 * Tests that need a real program say which. Where it is missing they are counted as not run and the end of the
 * run says so; where CI=true they fail. Installing is the task of `scripts/peers.ts`.
 */
import { describe, expect, it } from 'vitest'
import { findPeer, type PeerName, sourceOf } from './peer-table.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** The peer whose absence keeps a suite from running. */
    missingPeer?: string
  }
}

/** A `describe` whose body gets the path of the peer; not run, and said so, where the peer is missing. */
export function describePeer(name: PeerName, title: string, body: (path: string) => void): void {
  const path = findPeer(name)
  if (path !== undefined) {
    describe(title, () => body(path))
  } else if (process.env['CI'] === 'true') {
    describe(title, () => {
      it(`finds ${name}`, () => expect.unreachable(`${name} is missing: install ${sourceOf(name)}`))
    })
  } else {
    describe.skipIf(true)(title, { meta: { missingPeer: name } }, () => body(`/missing/${name}`))
  }
}

/** A `describe` that needs what a machine may not allow; not run, and said so, where that is missing. */
export function describeAllowed(missing: string | undefined, title: string, body: () => void): void {
  if (missing === undefined) describe(title, body)
  else describe.skipIf(true)(title, { meta: { missingPeer: missing } }, body)
}
