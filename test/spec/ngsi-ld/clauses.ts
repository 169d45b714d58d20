/**
 * The implemented clauses of GS CIM 009, with the tests that verify each. docs/compat.md is generated from
 * this list. A tidy test checks that every listed test exists, and that every spec test of NGSI-LD is listed.
 */

export interface Clause {
  /** Number in GS CIM 009 V1.8.1; clauses added in V1.9.1 have none. */
  readonly clause: string
  readonly title: string
  readonly state: 'done' | 'partial' | 'not'
  /** Paths below test/. */
  readonly tests: readonly string[]
  /** Missing parts, or particularities. */
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
const matching = 'spec/ngsi-ld/05.09-registration/02-matching.test.ts'
const registering = 'spec/ngsi-ld/05.09-registration/01-registrations.test.ts'

const partial = (clause: string, title: string, tests: readonly string[], note: string): Clause => ({
  clause,
  title,
  state: 'partial',
  tests,
  note,
})
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
    'The gateway forwards notifications of a context source unchanged; with splitEntities it merges them with the parts of the entity stored here and at other sources. If a single source receives a write, its 404 is the response; 207 is for writes that succeed in part.',
  ),
  done(
    '1.9',
    'Entities split across several brokers: splitEntities',
    [distribution('08-split-entities'), distribution('07-subscriptions')],
    'outbound.splitEntities sets its default. Without it sources evaluate conditions, and the gateway completes their results with the parts stored at other brokers; conditions that only the merged entity satisfies require splitEntities=true.',
  ),
  done('4.4, 5.5.7', 'The core @context, expansion and compaction of terms', [
    contexts('01-resolve-contexts'),
    property('context'),
  ]),
  done('4.5', 'Entities and attributes of every kind; several instances by datasetId', [
    model('01-kinds'),
    model('02-instances'),
    model('03-names-and-nulls'),
    model('06-refused'),
    provision('01-create-entity'),
    property('entity'),
  ]),
  done('4.5', 'Concise and simplified representations', [consumption('01-retrieve-entity')]),
  done('4.5', 'GeoJSON', [consumption('06-query-by-post')]),
  done(
    '4.5',
    'Linked entities, inline and flat',
    [consumption('05-linked-entities'), distribution('01-reading'), distribution('09-asked-for')],
    'Includes entities stored at other brokers, if the relationship states their type.',
  ),
  done(
    '4.5.6 to 4.5.9, 4.5.19',
    'Histories: normalized, temporalValues, aggregatedValues',
    [
      consumption('03-retrieve-temporal'),
      consumption('04-query-temporal'),
      consumption('09-whole-history'),
      distribution('05-histories'),
    ],
    'Instances do not show when their entity expires (V1.9.1).',
  ),
  done('4.6 to 4.8', 'Accepted names, values, geometries and times', [
    model('01-kinds'),
    model('03-names-and-nulls'),
    provision('01-create-entity'),
    property('entity'),
    property('geo'),
  ]),
  done('4.9', 'Query language', [
    consumption('02-query-entities'),
    consumption('06-query-by-post'),
    consumption('07-query-language'),
    property('query'),
    property('sql-query'),
  ]),
  partial(
    '4.9',
    'Query language: conditions on linked entities',
    [consumption('05-linked-entities'), distribution('11-linked-conditions'), property('linked-conditions')],
    'Queries of entities also evaluate linked entities stored at sources, if the condition or the relationship states their type; an entity stored here counts in its local state. Subscriptions and snapshots evaluate only entities linked here; queries of histories and purges return 400.',
  ),
  done('4.10', 'Geo-queries', [
    consumption('02-query-entities'),
    consumption('07-query-language'),
    property('geo'),
  ]),
  done('4.11', 'Temporal queries', [consumption('03-retrieve-temporal'), consumption('04-query-temporal')]),
  done('4.14', 'Tenants', [binding('03-04-negotiation'), contexts('02-stored-contexts')]),
  done(
    '4.15',
    'Language filter',
    [consumption('08-language-filter'), 'spec/broker/notifying.test.ts'],
    'If no language matches, the text without a language (@none) takes precedence over all others.',
  ),
  done('4.16', 'Several types of one entity', [model('04-types-and-scopes'), distribution('01-reading')]),
  done('4.17', 'Selection of entity types', [
    consumption('02-query-entities'),
    consumption('07-query-language'),
  ]),
  done(
    '4.18',
    'Scopes',
    [
      model('04-types-and-scopes'),
      provision('11-temporal-entities'),
      consumption('09-whole-history'),
      distribution('01-reading'),
    ],
    'A level may also begin with a digit, and contain hyphens. The value of deleted scopes in a history is an empty list, as in the ETSI suite.',
  ),
  done('4.19', 'Queries on scopes', [consumption('06-query-by-post'), property('sql-query')]),
  done(
    '4.20',
    'Names of operations and groups of operations offered in registrations',
    [distribution('12-operations'), distribution('03-entity-maps'), distribution('07-subscriptions')],
    'The gateway never requests the identity of a source.',
  ),
  done('4.21', 'pick, omit and attrs', [consumption('01-retrieve-entity'), consumption('06-query-by-post')]),
  partial(
    '1.9 (4.23, 5.7.2.4)',
    'Order of entities',
    [consumption('06-query-by-post'), distribution('01-reading')],
    'As in the ETSI suite, contrary to the clause: orderBy without local=true is accepted if no context sources are registered; 5.7.2.4 requires 400 in every case.',
  ),
  done(
    '5.2.2 to 5.2.7, 5.2.32, 5.2.35 to 5.2.38',
    'Data types: entities and attributes of each kind, common members',
    [model('01-kinds'), model('02-instances'), model('04-types-and-scopes'), provision('01-create-entity')],
  ),
  done('5.2.8 to 5.2.11, 5.2.34', 'Data types: registrations, their information, intervals and management', [
    registering,
    matching,
    distribution('06-sources'),
  ]),
  done(
    '5.2.12 to 5.2.15, 5.2.22, 5.2.33',
    'Data types: subscriptions, selectors, parameters of notifications, endpoints',
    [subscribing, 'spec/broker/notifying.test.ts', 'spec/delivery/http-endpoint.test.ts'],
  ),
  done('5.2.16 to 5.2.19', 'Data types: results of batches and updates', [
    provision('02-update-attributes'),
    provision('03-append-attributes'),
    provision('07-batch-operations'),
    distribution('02-writing'),
  ]),
  done('5.2.20, 5.2.21, 5.2.23', 'Data types: temporal entities, temporal queries, queries', [
    provision('11-temporal-entities'),
    consumption('04-query-temporal'),
    consumption('06-query-by-post'),
  ]),
  done('5.2.24 to 5.2.31', 'Data types: types, attributes, Features and their collections', [
    consumption('05-discovery'),
    consumption('06-query-by-post'),
  ]),
  done('5.5.2, 6.3.2', 'Error types', [binding('03-02-errors')]),
  done('5.5.9, 6.3.10', 'Pages, counts, links to previous and next page', [
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
  done('5.6.11 to 5.6.16', 'Histories: create, add, change, delete', [
    provision('11-temporal-entities'),
    provision('14-history-only-adds'),
    provision('15-history-of-the-recreated'),
    provision('16-deletions-in-history'),
  ]),
  done('5.6.17', 'Merge entity', [provision('17-merge-entity'), property('merge')]),
  done('5.6.18, 5.6.19', 'Replace entity, replace attribute', [provision('18-replace')]),
  done('1.9', 'Purge entities', [provision('21-purge')]),
  done('1.9', 'Proofs of attributes are stored as they were sealed', [provision('01-create-entity')]),
  done(
    '1.9 (4.22, 4.5.5)',
    'Expiry of entities and attributes, also if several brokers hold them',
    [
      'spec/broker/expiry.test.ts',
      model('05-transient-attributes'),
      distribution('10-transient'),
      property('distribution'),
      provision('11-temporal-entities'),
    ],
    'A history does not show when its entity expires. An uplink sends the expiry of attributes, but of an entity only that it has expired: the central broker may store it longer (4.22).',
  ),
  done('1.9', 'Downgrade to the version requested by a Prefer header or a subscription', [
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
    [consumption('03-retrieve-temporal'), consumption('04-query-temporal'), consumption('09-whole-history')],
    'GeoJSON has no form for histories: 406. Aggregates use observed values unless another timeproperty is given.',
  ),
  partial(
    '5.7.4, 6.3.10',
    'Partial and ordered histories: Content-Range, orderBy',
    [consumption('03-retrieve-temporal'), consumption('04-query-temporal'), property('history-merge')],
    'As in the ETSI suite, contrary to the clause: the unit of Content-Range is spelled date-time, while 6.3.10 has DateTime; orderBy=id without local=true is accepted if no context sources are registered.',
  ),
  done('5.7.5 to 5.7.10', 'Available types and attributes', [consumption('05-discovery')]),
  done('5.8.1 to 5.8.5', 'Subscriptions', [subscribing, 'spec/ngsi-ld/05.08-subscription/03-life.test.ts']),
  partial(
    '1.9',
    'Subscriptions to entities split across several brokers: splitEntities',
    [distribution('07-subscriptions')],
    'For a notification of a source, conditions are evaluated on the entity merged from all brokers; for a local change, on the local entity.',
  ),
  done(
    '5.8.6',
    'Notifications: over HTTP and MQTT, on changes and at intervals',
    [
      'spec/broker/matching.test.ts',
      'spec/broker/notifying.test.ts',
      'spec/broker/periods.test.ts',
      'spec/mqtt/publisher.test.ts',
      'spec/ngsi-ld/05.08-subscription/02-streams.test.ts',
      'spec/ngsi-ld/05.08-subscription/03-life.test.ts',
      'spec/ngsi-ld/05.08-subscription/04-streams-after-a-kill.test.ts',
      'spec/ngsi-ld/05.08-subscription/05-http-notifications.test.ts',
    ],
    'A notification contains linked entities in their state when it is created; changes of linked entities do not trigger one. Any 2xx is success, not only 200. Changes that match during a cooldown or a throttling window are sent at its end. A batch operation sends one notification with all entities; it sends several if there are more than 256 entities or 128 KB, or if an entity waits for an earlier notification.',
  ),
  done('5.9, 5.10', 'Registrations and their discovery', [registering]),
  done('5.11', 'Subscriptions to registrations', [
    'spec/ngsi-ld/05.11-registration-subscription/01-source-subscriptions.test.ts',
  ]),
  done(
    '5.12',
    'Matching of registrations',
    [
      matching,
      'spec/ngsi-ld/05.11-registration-subscription/01-source-subscriptions.test.ts',
      distribution('09-asked-for'),
    ],
    'In distributed operations a source that registered one type of a selection of several types (A;B) matches, because entities may be split across sources.',
  ),
  done('5.13', 'Storing, listing, serving, deleting and reloading contexts', [
    contexts('02-stored-contexts'),
  ]),
  done(
    '5.14',
    'Entity maps: of entities and histories, one or many, by GET and by POST',
    [distribution('03-entity-maps')],
    'They are stored in memory, as 5.14 allows. Maps of sources that offer entity maps are linked: the gateway requests pages from them by id, and updates and deletes them together with its own map.',
  ),
  done('5.15', 'Identity of the source', ['spec/ngsi-ld/05.15-information/01-source-identity.test.ts']),
  done(
    '1.9',
    'Snapshots',
    [
      'spec/ngsi-ld/05.16-snapshots/01-snapshots.test.ts',
      'spec/ngsi-ld/05.16-snapshots/02-snapshots-of-more.test.ts',
    ],
    "Sources are queried within the timeouts of their registrations; the end of a snapshot's lifetime alone sends no notification.",
  ),
  done(
    '6.2 to 6.3',
    'Paths, methods, media types, position of the @context',
    [
      binding('03-02-errors'),
      binding('03-04-negotiation'),
      binding('openapi'),
      binding('parameters'),
      binding('lenient'),
      property('http'),
    ],
    'A body without Content-Length is 411, also with chunked encoding (6.3.4). The body of a 415 states which Content-Type to send. timeAt and endTimeAt may have an offset from UTC. A query by id alone is accepted (5.7.2.4 requires type, attrs, q or a geo-query). The link to the next page precedes that of the @context.',
  ),
  done('7', 'Notifications over MQTT', ['spec/mqtt/notifications.test.ts', 'spec/mqtt/publisher.test.ts']),
  done(
    'none',
    'Beyond the standard: values without observedAt are returned separately and restored with their times',
    [provision('13-history-brought-back')],
  ),
  done('none', 'Beyond the standard: ETag, If-Match and If-None-Match, SenML, internal errors', [
    binding('conditional-reads'),
    binding('conditional-writes'),
    binding('beyond-the-standard'),
    binding('forced-failure'),
  ]),
]
