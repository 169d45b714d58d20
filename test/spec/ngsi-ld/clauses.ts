/**
 * What of GS CIM 009 is built, clause by clause, and which tests show it. The page docs/compat.md is made of it; a tidy
 * test holds that every test named is there, and that every spec test of NGSI-LD is named.
 */

export interface Clause {
  /** Number in GS CIM 009 V1.8.1; what came with V1.9.1 has none. */
  readonly clause: string
  readonly title: string
  readonly state: 'done' | 'partial' | 'not'
  /** Below test/. */
  readonly tests: readonly string[]
  /** What is missing, or what is particular. */
  readonly note?: string
}

const model = (name: string): string => `spec/ngsi-ld/04.05-model/${name}.test.ts`
const provision = (name: string): string => `spec/ngsi-ld/05.06-provision/${name}.test.ts`
const consumption = (name: string): string => `spec/ngsi-ld/05.07-consumption/${name}.test.ts`
const binding = (name: string): string => `spec/ngsi-ld/06-http-binding/${name}.test.ts`
const contexts = (name: string): string => `spec/ngsi-ld/05.13-contexts/${name}.test.ts`
const distribution = (name: string): string => `spec/ngsi-ld/04.03-distribution/${name}.test.ts`
const property = (name: string): string => `property/${name}.test.ts`
const subscribing = 'spec/ngsi-ld/05.08-subscription/01-subscriptions.test.ts'
const registering = 'spec/ngsi-ld/05.09-registration/01-registrations.test.ts'

const done = (clause: string, title: string, tests: readonly string[], note?: string): Clause =>
  note === undefined ? { clause, title, state: 'done', tests } : { clause, title, state: 'done', tests, note }
export const clauses: readonly Clause[] = [
  done(
    '4.3.6',
    'Distributed operations: forwarding, modes, loops',
    [
      distribution('01-reading'),
      distribution('02-writing'),
      distribution('04-discovery'),
      distribution('05-histories'),
      distribution('06-sources'),
      distribution('07-subscriptions'),
      property('distribution'),
      property('history-merge'),
    ],
    'What a source tells of a subscription is told as it came; with splitEntities, with what is held of the same entity here and elsewhere.',
  ),
  done(
    '1.9',
    'Entities of which several hold parts: splitEntities',
    [distribution('08-split-entities'), distribution('07-subscriptions')],
    'outbound.splitEntities is its default. Without it sources judge conditions, and what is found is completed by what others hold of it; conditions that are fulfilled only together are judged with splitEntities=true.',
  ),
  done('4.4, 5.5.7', 'The core @context, expansion and compaction of terms', [
    contexts('01-resolve-contexts'),
    property('context'),
  ]),
  done('4.5', 'Entities and attributes of every kind; several instances by datasetId', [
    model('01-kinds'),
    model('02-instances'),
    model('03-names-and-nulls'),
    provision('01-create-entity'),
    property('entity'),
  ]),
  done('4.5', 'Concise and simplified representations', [consumption('01-retrieve-entity')]),
  done('4.5', 'GeoJSON', [consumption('06-query-by-post')]),
  done(
    '4.5',
    'Linked entities, inline and flat',
    [consumption('05-linked-entities'), distribution('01-reading'), distribution('09-asked-for')],
    'Those of others are joined, but not looked at by conditions on linked entities.',
  ),
  done('4.9', 'Query language', [
    consumption('02-query-entities'),
    consumption('07-query-language'),
    property('query'),
    property('sql-query'),
  ]),
  done('4.10', 'Geo-queries', [
    consumption('02-query-entities'),
    consumption('07-query-language'),
    property('geo'),
  ]),
  done('4.11', 'Temporal queries', [consumption('03-retrieve-temporal'), consumption('04-query-temporal')]),
  done('4.14', 'Tenants', [binding('03-04-negotiation'), contexts('02-stored-contexts')]),
  done('4.17', 'Selection of entity types', [
    consumption('02-query-entities'),
    consumption('07-query-language'),
  ]),
  done('4.19', 'Queries on scopes', [consumption('06-query-by-post')]),
  done('4.21', 'pick, omit and attrs', [consumption('01-retrieve-entity'), consumption('06-query-by-post')]),
  done(
    '1.9',
    'Order of entities',
    [consumption('06-query-by-post')],
    'orderBy without local=true is 400 only where context sources are registered; 5.7.2.4 wants it everywhere, and the ETSI suite an answer.',
  ),
  done('5.5.2, 6.3.2', 'Error types', [binding('03-02-errors')]),
  done('5.5.9, 6.3.10', 'Pages, counts, links to neighbours', [
    consumption('02-query-entities'),
    property('paging'),
  ]),
  done('5.6.1', 'Create entity', [provision('01-create-entity')]),
  done('5.6.2', 'Update attributes', [provision('02-update-attributes')]),
  done('5.6.3', 'Append attributes', [provision('03-append-attributes')]),
  done('5.6.4', 'Partial attribute update', [provision('04-partial-update')]),
  done('5.6.5, 5.6.6', 'Delete attribute, delete entity', [provision('06-delete-entity')]),
  done('5.6.7 to 5.6.10, 5.6.20', 'Batches: create, upsert, update, delete, merge', [
    provision('07-batch-operations'),
    provision('08-batches-that-repeat'),
  ]),
  done('5.6.11 to 5.6.16', 'Histories: create, add, change, delete', [provision('11-temporal-entities')]),
  done('5.6.17', 'Merge entity', [provision('17-merge-entity'), property('merge')]),
  done('5.6.18, 5.6.19', 'Replace entity, replace attribute', [provision('18-replace')]),
  done('1.9', 'Purge entities', [provision('21-purge')]),
  done('1.9', 'Proofs of attributes are kept as they were sealed', [provision('01-create-entity')]),
  done(
    '1.9 (4.22, 4.5.5)',
    'Entities and attributes that expire, also those that several hold',
    [
      'spec/broker/expiry.test.ts',
      distribution('10-transient'),
      property('distribution'),
      provision('11-temporal-entities'),
    ],
    'A history does not tell when its entity expires. An uplink tells when attributes expire, and of an entity that it has: over there it may be held for longer (4.22).',
  ),
  done('1.9', 'Downgrade to the version that a Prefer header or a subscription names', [
    binding('03-21-conformance'),
  ]),
  done('5.7.1', 'Retrieve entity', [consumption('01-retrieve-entity')]),
  done('5.7.2', 'Query entities, by GET and by POST', [
    consumption('02-query-entities'),
    consumption('06-query-by-post'),
  ]),
  done(
    '5.7.3, 5.7.4',
    'Retrieve and query histories',
    [consumption('03-retrieve-temporal'), consumption('04-query-temporal')],
    'GeoJSON has no form for histories: 406. The unit of Content-Range is spelled date-time, as the ETSI suite does, where 6.3.10 has DateTime. orderBy takes what the suite orders by, where 5.7.4 takes id alone.',
  ),
  done('5.7.5 to 5.7.10', 'Types and attributes there are', [consumption('05-discovery')]),
  done(
    '5.8.1 to 5.8.5',
    'Subscriptions',
    [subscribing],
    'With splitEntities, conditions on what a source tells are judged on what all hold; on what changes here, by what is here.',
  ),
  done(
    '5.8.6',
    'Notifications: over HTTP and MQTT, at changes and at intervals',
    [
      'spec/broker/matching.test.ts',
      'spec/broker/notifying.test.ts',
      'spec/broker/periods.test.ts',
      'spec/mqtt/publisher.test.ts',
      'spec/ngsi-ld/05.08-subscription/02-streams.test.ts',
      'spec/ngsi-ld/05.08-subscription/03-life.test.ts',
      'spec/ngsi-ld/05.08-subscription/04-streams-after-a-kill.test.ts',
      'spec/ngsi-ld/05.08-subscription/05-told-over-http.test.ts',
    ],
    'Linked entities are told as they are when they are joined; their own changes trigger nothing. Any 2xx is success, not 200 alone. What matches within a cooldown is told after it.',
  ),
  done('5.9, 5.10', 'Registrations and their discovery', [registering]),
  done('5.11', 'Subscriptions to registrations', [
    'spec/ngsi-ld/05.11-registration-subscription/01-source-subscriptions.test.ts',
  ]),
  done('5.13', 'Storing, listing, serving, deleting and reloading contexts', [
    contexts('02-stored-contexts'),
  ]),
  done(
    '5.14',
    'Entity maps: of entities and histories, one or many, by GET and by POST',
    [distribution('03-entity-maps')],
    'They live in memory, as 5.14 allows. Maps of sources that offer to make them are linked; pages are asked of these by id, and what becomes of a map becomes of them.',
  ),
  done('5.15', 'Identity of the source', ['spec/ngsi-ld/05.15-information/01-source-identity.test.ts']),
  done(
    '1.9',
    'Snapshots',
    [
      'spec/ngsi-ld/05.16-snapshots/01-snapshots.test.ts',
      'spec/ngsi-ld/05.16-snapshots/02-snapshots-of-more.test.ts',
    ],
    'Sources are asked within the time that their registrations allow; the end of a lifetime alone is not told.',
  ),
  done('6.2 to 6.3', 'Paths, methods, media types, where a @context stands', [
    binding('03-02-errors'),
    binding('03-04-negotiation'),
    binding('openapi'),
    binding('parameters'),
    property('http'),
  ]),
  done(
    'none',
    'Beyond the standard: values without observedAt are told alone and brought back with their times',
    [provision('13-history-brought-back')],
  ),
  done('none', 'Beyond the standard: ETag, If-Match and If-None-Match, SenML, failures of our own', [
    binding('conditional-reads'),
    binding('conditional-writes'),
    binding('beyond-the-standard'),
    binding('forced-failure'),
  ]),
]

/**
 * Tests of the ETSI suite that do not pass. standard: what they expect, or send, contradicts the text of the clause. test:
 * they cannot pass whatever is answered. choice: the text allows what they expect, too. internet: they ask for a host there.
 */
export interface AnsweredOtherwise {
  readonly test: string
  readonly kind: 'standard' | 'test' | 'choice' | 'internet'
  readonly clause: string
  readonly why: string
}

export const answeredOtherwise: readonly AnsweredOtherwise[] = [
  {
    test: '018_14_02',
    kind: 'standard',
    clause: '4.5.23.3',
    why: 'Expects one entity for join=flat where nothing is linked; a flat answer is always a list.',
  },
  {
    test: '054_02_02',
    kind: 'choice',
    clause: '5.6.18, 6.3.2',
    why: 'Expects 400 for a replacement without an id, which goes to the path of the list. That knows no PUT: 405, as 032_01 expects of a deletion without an id.',
  },
  {
    test: '050_04, 051_03, 053_07',
    kind: 'internet',
    clause: '5.13',
    why: 'Uses contexts of sites on the Internet; without it, as when this was measured, there is 504 where one of them is new.',
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
    why: 'Uses the address of the test before it twice over, and counts three uses of a context that two requests used.',
  },
  {
    test: '037_08_01',
    kind: 'standard',
    clause: '5.10.2',
    why: 'Expects information of a registration that does not match the query; only what matches is shown.',
  },
  {
    test: '038_08_03',
    kind: 'standard',
    clause: '4.9',
    why: 'Expects 400 for a q that is a name alone, which asks whether there is such an attribute.',
  },
  {
    test: '046_05_01',
    kind: 'standard',
    clause: '4.9, 5.2.12',
    why: 'Writes %20 for a space in the q of a JSON body, where texts are not encoded as in an address.',
  },
  {
    test: '047_01, 047_02, 047_08, 047_09',
    kind: 'test',
    clause: '5.11.7',
    why: 'Waits for notifications of registrations of vehicles on a subscription to buildings.',
  },
  {
    test: '047_03',
    kind: 'test',
    clause: '5.2.8',
    why: 'Takes the type of a registered entity for a list where a single name was registered, which 033_05 takes for a text.',
  },
  {
    test: '047_16_01, 047_16_03',
    kind: 'standard',
    clause: '6.3.5',
    why: 'Changes a subscription by application/json without a Link header, so that its types are those of the core; the types of the registrations are of another @context.',
  },
  {
    test: '038_02',
    kind: 'test',
    clause: '6.12.3.1',
    why: 'Takes the whole Location for the id of the subscription.',
  },
  {
    test: '039_05',
    kind: 'standard',
    clause: '6.3.4',
    why: 'Sends a body without a Content-Type, which is 415 whatever the body is.',
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
    why: 'Ends at the 400 and the 404 that it asks for, because its own request takes no status from 400 on.',
  },
  {
    test: 'D001_02_exc, D012_01_exc, D013_01_exc, D013_02_exc, D016_01_exc',
    kind: 'standard',
    clause: '4.3.6.3',
    why: 'Registers sources as exclusive without attributes, or for a pattern of ids.',
  },
  {
    test: 'D005_01_exc',
    kind: 'standard',
    clause: '5.9.2',
    why: 'Registers a source as responsible for data that is held here, which is a conflict since V1.9.1.',
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
    why: 'Registers an entity whose id is no URI.',
  },
  {
    test: 'D009_01_inc',
    kind: 'standard',
    clause: '5.6.19',
    why: 'Sends an attribute to be replaced inside an object that has it as a member; the body is the attribute itself.',
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
    why: 'Looks at a request to its source without having waited for one.',
  },
  {
    test: 'D016_01_red',
    kind: 'test',
    clause: '4.3.6.3',
    why: 'Looks for entities that it redirects to two sources, neither of which it lets answer the query.',
  },
]
