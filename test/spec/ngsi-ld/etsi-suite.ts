/** Number of tests of the ETSI suite that apply, and those that do not pass; docs/compat.md lists them. */
export const applicableTests = 523

/**
 * Tests of the ETSI suite that do not pass, each with the reason; docs/compat.md lists them. standard: the
 * test expects or sends something that contradicts the clause. test: it cannot pass with any response.
 * choice: the clause also allows what the test expects. internet: it requires a host on the Internet.
 */
export interface AnsweredOtherwise {
  readonly test: string
  readonly kind: 'standard' | 'test' | 'choice' | 'internet'
  readonly clause: string
  readonly why: string
}

export const failingTests: readonly AnsweredOtherwise[] = [
  {
    test: '018_14_02',
    kind: 'standard',
    clause: '4.5.23.3',
    why: 'Expects one entity for join=flat if nothing is linked; a flat response is always a list.',
  },
  {
    test: '008_01',
    kind: 'standard',
    clause: '5.6.11',
    why: 'Expects that a value replaces another one of the same observedAt. Writing history adds; only requests that name an instance modify or remove one.',
  },
  {
    test: '018_16, 021_20',
    kind: 'standard',
    clause: '5.5.2',
    why: 'Expects InvalidRequest for an unknown value of format. The request is well-formed and its data are wrong: BadRequestData.',
  },
  {
    test: '019_03_05',
    kind: 'choice',
    clause: '5.7.2.4',
    why: 'Expects 400 for a query by ids alone, which the gateway accepts for clients that do not know the type.',
  },
  {
    test: '021_23_01, 021_23_03, 021_23_04, 021_23_05, 021_23_06, 021_23_07, 021_23_08, 021_23_09',
    kind: 'standard',
    clause: '5.7.4.4',
    why: 'Orders histories by attributes and times; the clause allows only id.',
  },
  {
    test: '031_01',
    kind: 'standard',
    clause: '5.8.1.4',
    why: 'Expects a list of subscriptions without jsonldContext, which 028_01 and 030_03 leave open.',
  },
  {
    test: '060_05',
    kind: 'standard',
    clause: '5.6.21.4',
    why: 'Purges by an id alone, which the clause rejects.',
  },
  {
    test: '054_02_02',
    kind: 'choice',
    clause: '5.6.18, 6.3.2',
    why: 'Expects 400 for a replacement without an id, which addresses the path of the list. That path has no PUT: 405, as 032_01 expects for a deletion without an id.',
  },
  {
    test: '050_04, 051_03, 053_07',
    kind: 'internet',
    clause: '5.13',
    why: 'Uses contexts of sites on the Internet; without Internet, as in this measurement, a new context is 504. Passes if other contexts are served in their place.',
  },
  {
    test: '053_05',
    kind: 'standard',
    clause: '6.3.2',
    why: 'Expects 503 for LdContextNotAvailable, which is 504 since V1.8.1. The profile 1.1.2 answers 503.',
  },
  {
    test: '053_06',
    kind: 'test',
    clause: '5.13.4',
    why: 'Uses the address of the previous test twice, and counts a second request with a cached context as two uses, while 053_04 counts a request with a hosted one as one.',
  },
  {
    test: '037_08_01',
    kind: 'choice',
    clause: '5.10.2.5',
    why: 'Expects all information of a registration, also information that does not match the query. The clause recommends to show only matching information.',
  },
  {
    test: '038_08_03',
    kind: 'standard',
    clause: '4.9',
    why: 'Expects 400 for a q that is only a name, which tests whether the attribute exists.',
  },
  {
    test: '046_05_01',
    kind: 'standard',
    clause: '4.9, 5.2.12',
    why: 'Writes %20 for a space in the q of a JSON body, in which texts are not percent-encoded.',
  },
  {
    test: '047_01, 047_02, 047_08, 047_09',
    kind: 'test',
    clause: '5.11.7',
    why: 'Waits on a subscription to buildings for notifications about registrations of vehicles.',
  },
  {
    test: '047_03',
    kind: 'test',
    clause: '5.2.8',
    why: 'Expects the type of a registered entity as a list after registering a single name, which 033_05 expects as a text.',
  },
  {
    test: '047_16_01, 047_16_03',
    kind: 'standard',
    clause: '6.3.5',
    why: 'Changes a subscription by application/json without a Link header, so that its types are those of the core; the types of the registrations belong to another @context.',
  },
  {
    test: '038_02',
    kind: 'test',
    clause: '6.12.3.1',
    why: 'Uses the whole Location as the id of the subscription.',
  },
  {
    test: '039_05',
    kind: 'standard',
    clause: '6.3.4',
    why: 'Sends a body without a Content-Type, which is 415 for any body.',
  },
  {
    test: '041_03_01, 041_03_02',
    kind: 'standard',
    clause: '6.3.6',
    why: 'Accepts every media type and expects application/ld+json; application/json is the default.',
  },
  {
    test: '042_02, 042_03',
    kind: 'test',
    clause: '5.11.6',
    why: 'Stops at the 400 and 404 that it provokes, because its HTTP client rejects every status from 400.',
  },
  {
    test: 'D001_02_exc, D012_01_exc, D013_01_exc, D013_02_exc, D016_01_exc',
    kind: 'standard',
    clause: '4.3.6.3',
    why: 'Registers exclusive sources without attributes, or for an id pattern.',
  },
  {
    test: 'D005_01_exc',
    kind: 'standard',
    clause: '5.9.2',
    why: 'Registers a source as responsible for data that is stored here, which is a conflict since V1.9.1.',
  },
  {
    test: 'D011_03_inc_02, D011_04_inc_02',
    kind: 'standard',
    clause: '6.3.5',
    why: 'Sends application/ld+json without an @context and with a Link header.',
  },
  {
    test: 'D012_01_red, D013_02_red, D015_01_inc',
    kind: 'standard',
    clause: '5.2.8',
    why: 'Registers an entity whose id is not a URI.',
  },
  {
    test: 'D009_01_inc',
    kind: 'standard',
    clause: '5.6.19',
    why: 'Sends the attribute to replace as a member of an object; the body must be the attribute itself.',
  },
  {
    test: 'D013_01_red',
    kind: 'standard',
    clause: '5.9.2',
    why: 'Registers two sources under one id.',
  },
  {
    test: 'D014_02_inc',
    kind: 'test',
    clause: '5.6.9',
    why: 'Checks for a request to its source without waiting for one.',
  },
  {
    test: 'D016_01_red',
    kind: 'test',
    clause: '4.3.6.3',
    why: 'Expects entities that it redirects to two sources, but configures neither source to respond to the query.',
  },
]
