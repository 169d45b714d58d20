/**
 * Seeds that once showed a difference between a hub and its gateway, with the cause. `npm run judge --
 * --kept` runs all of them, `npm test` a quarter with each run; a failing seed is added here.
 */
export interface KeptSeed {
  readonly seed: number
  /** The limit of pending observations when it failed; absent for any number. */
  readonly budget?: number
  readonly found: string
}

export const keptSeeds: readonly KeptSeed[] = [
  {
    seed: 1,
    found:
      'older values became current again after the gateway was killed; observations of attributes deleted since were' +
      ' lost; earlier observations got units of later ones; values were sent twice as unobserved',
  },
  {
    seed: 2,
    found: 'a device sent older readings while the name of the hub was requested',
  },
  {
    seed: 105,
    found:
      'a board started in 1970 after its clock had been trusted an hour ahead: once corrected, its last value was older than' +
      ' one it had sent, but still current, and went back at the hub',
  },
  {
    seed: 12,
    found:
      'commit times stood still after the clock had been set back, so past values sent after a kill included unsent live' +
      ' ones: values went back, and appeared twice where an entity had been re-created',
  },
  {
    seed: 41,
    found:
      'a hub was restored after the clock of the gateway had jumped: the reconciliation sent unsent live values as current' +
      ' and as history, so values went back and appeared twice',
  },
  {
    seed: 8314,
    found: 'an attribute deleted shortly before its entity stayed at the hub, and the entity with it',
  },
  {
    seed: 319462,
    found:
      'the live lane left past values to backfill in the middle of a batch, so history overtook unsent current values:' +
      ' values went back',
  },
  {
    seed: 69994,
    budget: 1817,
    found: 'the same, with a small budget',
  },
  {
    seed: 853334,
    found: 'the same for devices: past values arrived before current ones',
  },
  {
    seed: 190244,
    budget: 1388,
    found:
      'a budget gap contained a late value and so reached far back: older data missing at a restored hub was taken for part' +
      ' of the gap',
  },
  {
    seed: 904337,
    found:
      'after a kill of the hub, entities of a batch were repeated in other notifications under other ids; the judge recognized' +
      ' repeats by id and complained that values went back',
  },
  {
    seed: 811,
    found:
      'the gateway was killed before it first stored the state of its uplink: after the restart it did not send deletions of' +
      ' entities that it had sent already, and the hub kept attributes of earlier lives',
  },
  {
    seed: 8133,
    found:
      'a value that followed one whose time was about to be corrected was current here, but late in the log: the hub stayed' +
      ' one value behind',
  },
]

/** The size of trials of kept seeds, and of the new seeds of `npm test`. */
export const shortTrial = { observations: 12_000, seconds: 6, rate: 2000, patienceSeconds: 60 }
