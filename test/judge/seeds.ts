/**
 * Seeds that once showed a difference between a hub and its gateway, and what it was. `npm run judge -- --kept` runs all of
 * them, `npm test` a quarter with each run; a seed that fails is added here.
 */
export interface KeptSeed {
  readonly seed: number
  /** Most observations that could wait for the hub when it failed; left out, any number. */
  readonly budget?: number
  readonly found: string
}

export const keptSeeds: readonly KeptSeed[] = [
  {
    seed: 1,
    found:
      'older values current again after the gateway was killed; what was observed of attributes that went since then was' +
      ' lost; units of later observations on earlier ones; values told twice as other than observed',
  },
  {
    seed: 2,
    found: 'a device went back by a pack of readings while the hub was asked what it calls itself',
  },
  {
    seed: 105,
    found:
      'a board began in 1970 after its clock had been believed an hour ahead: put right, its last value was older than one' +
      ' that it had told, current all the same, and went back at the hub',
  },
  {
    seed: 12,
    found:
      'commit times stood still after the clock had been set back, so what was told as past after a kill held what the live' +
      ' lane was still to tell: values went back, and stood twice where an entity had gone and come again',
  },
  {
    seed: 41,
    found:
      'a hub was restored while the clock of the gateway had jumped: the comparison told as current, and as history, what the' +
      ' live lane had still to tell, so values went back and stood twice',
  },
  {
    seed: 8314,
    found:
      'an attribute that was dropped shortly before its entity was deleted stayed at the hub, and the entity with it',
  },
  {
    seed: 319462,
    found:
      'what the live lane owed to the past was owed in the midst of a batch, so history passed what was still to be told as' +
      ' current: values went back',
  },
  {
    seed: 69994,
    budget: 1817,
    found: 'the same, while few observations may wait',
  },
  {
    seed: 853334,
    found: 'the same for devices: what they had published came before what was current',
  },
  {
    seed: 190244,
    budget: 1388,
    found:
      'a gap of a budget held a late value and so reached far back: what a restored hub lacked of what had been written long' +
      ' before was taken for what the gap tells of',
  },
  {
    seed: 904337,
    found:
      'after a kill of the hub, entities of a batch were repeated in other notifications under other ids; the judge recognised' +
      ' repeats by id and complained that values went back',
  },
  {
    seed: 811,
    found:
      'the gateway was killed before it first stored the state of its uplink: after the restart it did not send deletions of' +
      ' entities that it had sent already, and the hub kept attributes of earlier lives',
  },
]

/** The size of the trials of kept seeds, and of the new seeds of `npm test`. */
export const shortTrial = { observations: 12_000, seconds: 6, rate: 2000, patienceSeconds: 60 }
