/**
 * The data format of one tenant's database file, as numbered migrations that are never edited once released.
 * `formatVersion` is the number of the last one; the store refuses a file with a higher number. The first
 * migration is the format of version 0.1.0.
 *
 * `log` is the one numbered log: observation blobs and entity changes in order of arrival. `entity` holds the
 * documents; `scalar`, `place`, `entity_type` and `entity_shape` index them. `chunk` is the folded history
 * and `delivery` the outbox. Times are integer milliseconds UTC.
 *
 * Row numbers have one letter, here and in the types of rows:
 * - `n`: a row of the log; `rid`: an entity
 * - `s`: a stream or an MQTT session; `k`: that number packed with a place in its sequence
 * - `d`: a delivery; `q`: a quarantined frame or a refused change
 * - `i`: a subscription or a name; `r`: a registration
 */

export interface Migration {
  readonly version: number
  readonly title: string
  readonly sql: string
}

export const migrations: readonly Migration[] = [
  {
    version: 1,
    title: 'the format of version 0.1.0',
    sql: `
-- Facts about the file itself: format version, cursors, counters.
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

-- Interned attribute and type names (core-compacted).
CREATE TABLE name (i INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;

-- Entity documents: normalized representation, core-compacted names, without system attributes.
-- n is the log number the document includes; sys holds createdAt/modifiedAt of its attributes as JSON.
CREATE TABLE entity (
  rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, n INTEGER NOT NULL,
  created INTEGER NOT NULL, modified INTEGER NOT NULL, sys TEXT NOT NULL, doc TEXT NOT NULL
) STRICT;
CREATE TABLE entity_type (type INTEGER NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (type, rid)) STRICT, WITHOUT ROWID;
-- First-level scalars and scopes (name '@scope'). kind 1 number, 2 text, 3 boolean as 0 or 1, 4 a point as its Z-order
-- cell; 5 marks an attribute with several texts, 6 one with an array or object.
CREATE TABLE scalar (
  name INTEGER NOT NULL, kind INTEGER NOT NULL, value ANY NOT NULL, rid INTEGER NOT NULL,
  PRIMARY KEY (name, kind, value, rid)
) STRICT, WITHOUT ROWID;
-- Which entities have an attribute at all (existence terms, attrs selection).
CREATE TABLE has_attribute (name INTEGER NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (name, rid)) STRICT, WITHOUT ROWID;
-- Bounding boxes of GeoProperties; lon and lat are exact for points, NULL otherwise.
CREATE VIRTUAL TABLE place USING rtree (i, x0, x1, y0, y1, +rid INTEGER, +name INTEGER, +lon REAL, +lat REAL);
CREATE TABLE place_of (rid INTEGER NOT NULL, name INTEGER NOT NULL, i INTEGER NOT NULL, PRIMARY KEY (rid, name, i)) STRICT, WITHOUT ROWID;
-- The shape of an entity: its types and its attributes with their kinds, as an interned text of interned names,
-- "=type,type|attribute.kind,attribute.kind", each list ascending. Few shapes stand for many entities.
CREATE TABLE entity_shape (shape INTEGER NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (shape, rid)) STRICT, WITHOUT ROWID;
-- When the first part of an entity expires; ms.
CREATE TABLE expiry (at INTEGER NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (at, rid)) STRICT, WITHOUT ROWID;
-- Entities that are copies from another broker; source is the name of the setting that brought them.
CREATE TABLE entity_copy (id TEXT PRIMARY KEY, source TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- The last document of every deleted entity that had streams or a place in history. via: the Via chain through which it
-- was created; created: ms, null if unknown.
CREATE TABLE tombstone (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL, rid INTEGER NOT NULL, at INTEGER NOT NULL, doc TEXT NOT NULL,
  via TEXT, created INTEGER
) STRICT;
CREATE INDEX tombstone_id ON tombstone (id);
CREATE INDEX tombstone_rid ON tombstone (rid);
CREATE INDEX tombstone_at ON tombstone (at);

-- The one numbered log. kind 1 = observation blob, kind 2 = entity change (JSON), with rid. kind 5 and 6 are 1 and 2 with
-- times by a clock that was not set; they become 1 and 2 when it is. via: the Via chain of a blob, null for writes here.
CREATE TABLE log (
  n INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, rid INTEGER, body BLOB NOT NULL, via TEXT
) STRICT;
CREATE INDEX log_unsettled ON log (n) WHERE kind > 4;

-- A stream is one attribute instance that is observed; its number lives in log blobs and chunk keys.
-- folded = log number up to which its observations are in chunks; shape = JSON of the instance without
-- value and observedAt; mirror = name of the attribute rendered from observedAt, if any.
CREATE TABLE stream (
  s INTEGER PRIMARY KEY, rid INTEGER NOT NULL, name INTEGER NOT NULL, dataset TEXT NOT NULL,
  folded INTEGER NOT NULL DEFAULT 0, retired INTEGER NOT NULL DEFAULT 0, shape TEXT NOT NULL, mirror INTEGER
) STRICT;
CREATE INDEX stream_of ON stream (rid, name, dataset);
-- Folded history. k packs (stream, slot of t0): (s << 41) | slot. Chunks of a stream never overlap in time.
-- Changes that are no observations live in entity_history. m0, m1: commit times of its earliest and latest instance.
CREATE TABLE chunk (
  k INTEGER PRIMARY KEY, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, count INTEGER NOT NULL,
  min REAL, max REAL, sum REAL, sumsq REAL, codec INTEGER NOT NULL, shapes TEXT NOT NULL, body BLOB NOT NULL,
  m0 INTEGER NOT NULL, m1 INTEGER NOT NULL
) STRICT;
CREATE INDEX chunk_modified ON chunk (m1, m0);
-- Folded entity changes: JSON lines, zstd, per entity and first log number. t0, t1: commit times of first and last.
CREATE TABLE entity_history (
  rid INTEGER NOT NULL, n0 INTEGER NOT NULL, n1 INTEGER NOT NULL, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL,
  count INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (rid, n0)
) STRICT;
CREATE INDEX entity_history_at ON entity_history (t1, t0);
-- Numbers of a stream that retention removed for their age, per hour (ms of its beginning).
CREATE TABLE rollup (
  s INTEGER NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL, min REAL NOT NULL, max REAL NOT NULL,
  sum REAL NOT NULL, sumsq REAL NOT NULL, PRIMARY KEY (s, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_hour ON rollup (hour);
-- Instances of history that a client replaced (body is the instance as JSON) or removed (body is NULL), by instance id.
CREATE TABLE history_edit (rid INTEGER NOT NULL, instance TEXT NOT NULL, at INTEGER NOT NULL, body TEXT, PRIMARY KEY (rid, instance)) STRICT, WITHOUT ROWID;
-- Everything of an attribute up to log number n and commit time at is erased; name '' means the whole entity, dataset '*'
-- all instances.
CREATE TABLE history_erased (rid INTEGER NOT NULL, name TEXT NOT NULL, dataset TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (rid, name, dataset)) STRICT, WITHOUT ROWID;
-- Entities that a write of history created; erasing their history deletes them.
CREATE TABLE history_born (rid INTEGER PRIMARY KEY) STRICT;
-- Retention removed: count instances of a stream (s = 0: changes of entity rid) between t0 and t1. g grows with
-- each touch; the records g = 0 (size) and g = -1 (age) sum up those beyond the ceiling of records. since: when the record
-- began (ms); m1: commit time of the last removed instance; owner: id and type of the entity as JSON, if its tombstone is
-- removed too; unread: 1 if a follower had not read some of it.
CREATE TABLE gap (
  g INTEGER PRIMARY KEY, s INTEGER NOT NULL, rid INTEGER NOT NULL, name INTEGER NOT NULL, t0 INTEGER NOT NULL,
  t1 INTEGER NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, since INTEGER NOT NULL DEFAULT 0,
  m1 INTEGER NOT NULL DEFAULT 0, owner TEXT, unread INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX gap_of ON gap (rid, s);

-- NGSI-LD subscriptions; doc is the subscription in internal form, stats the delivery counters as JSON.
CREATE TABLE subscription (i INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL, stats TEXT NOT NULL) STRICT;
-- The outbox. For an observation: stream, t, value (JSON) and no body; else the rendered data member. Deliveries of one
-- subscription with the same batch may share a notification.
CREATE TABLE delivery (
  d INTEGER PRIMARY KEY, sub INTEGER NOT NULL, endpoint TEXT NOT NULL, entity TEXT NOT NULL,
  at INTEGER NOT NULL, stream INTEGER, t INTEGER, value TEXT, body TEXT, batch INTEGER
) STRICT;
CREATE INDEX delivery_endpoint ON delivery (endpoint, d);
CREATE TABLE dead_letter (
  d INTEGER PRIMARY KEY, sub INTEGER NOT NULL, endpoint TEXT NOT NULL, entity TEXT NOT NULL, at INTEGER NOT NULL,
  buried INTEGER NOT NULL, reason TEXT NOT NULL, body TEXT NOT NULL
) STRICT;

-- Registrations of context sources and subscriptions to them: documents in internal form, counters as JSON.
-- r keeps the order of creation; i is negative, so that it never equals a number of the table subscription.
CREATE TABLE csource (r INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL, stats TEXT NOT NULL) STRICT;
CREATE TABLE csource_subscription (i INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL, stats TEXT NOT NULL) STRICT;
-- Subscriptions forwarded to context sources, by the id at the source; doc names ours, the source, and what is pending there.
CREATE TABLE passed_subscription (id TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- Last answer to a request (key) of a source whose registration allows copies, as JSON; at is ms.
CREATE TABLE source_copy (key TEXT PRIMARY KEY, source TEXT NOT NULL, at INTEGER NOT NULL, answer TEXT NOT NULL) STRICT;
CREATE INDEX source_copy_source ON source_copy (source);

-- Progress of each uplink as JSON, by the id of its subscription.
CREATE TABLE uplink (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- Changes that another broker rejected, with the reason; step is the request as JSON.
CREATE TABLE uplink_refusal (q INTEGER PRIMARY KEY, uplink TEXT NOT NULL, entity TEXT NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, step TEXT NOT NULL) STRICT;
-- Values of an attribute that an uplink dropped and has not reported, as JSON, by stream and reason.
CREATE TABLE uplink_loss (uplink TEXT NOT NULL, of TEXT NOT NULL, loss TEXT NOT NULL, PRIMARY KEY (uplink, of)) STRICT, WITHOUT ROWID;
-- Registrations and subscriptions of this gateway at other brokers, as JSON, by kind and id.
CREATE TABLE downward_note (key TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- User @contexts fetched or hosted.
CREATE TABLE context (url TEXT PRIMARY KEY, kind TEXT NOT NULL, fetched INTEGER NOT NULL, expires INTEGER, body TEXT NOT NULL) STRICT;

-- Frames that could not be decoded, or whose device is not accepted yet.
CREATE TABLE quarantine (q INTEGER PRIMARY KEY, at INTEGER NOT NULL, topic TEXT NOT NULL, source TEXT, content_type TEXT, retained INTEGER NOT NULL, transport TEXT NOT NULL, bridge TEXT, reason TEXT NOT NULL, payload BLOB NOT NULL) STRICT;

-- MQTT. sent = newest message of the session's queue ever sent, NULL while its client is connected. expiry: session expiry
-- interval in seconds, NULL if the session ends by age.
CREATE TABLE session (s INTEGER PRIMARY KEY, client TEXT NOT NULL UNIQUE, seen INTEGER NOT NULL, sent INTEGER, expiry INTEGER) STRICT;
-- options: 1 No Local, 2 Retain As Published.
CREATE TABLE session_filter (
  s INTEGER NOT NULL, filter TEXT NOT NULL, qos INTEGER NOT NULL, options INTEGER NOT NULL DEFAULT 0, identifier INTEGER,
  PRIMARY KEY (s, filter)
) STRICT, WITHOUT ROWID;
-- Queued messages. k packs (session, place in its queue): s * 2^32 + place, from which the packet identifier follows.
-- released = 1 after PUBREC (QoS 2): only PUBREL is still pending. properties: those for subscribers, as bytes of MQTT 5.
-- expires: ms.
CREATE TABLE session_message (
  k INTEGER PRIMARY KEY, qos INTEGER NOT NULL, released INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL,
  topic TEXT NOT NULL, payload BLOB NOT NULL, retain INTEGER NOT NULL DEFAULT 0, properties BLOB, expires INTEGER
) STRICT;
CREATE TABLE retained (topic TEXT PRIMARY KEY, qos INTEGER NOT NULL, payload BLOB NOT NULL, properties BLOB, expires INTEGER) STRICT, WITHOUT ROWID;
-- expiry of the message and delay of the will in seconds; due: when it is published (ms), NULL while its client is connected.
CREATE TABLE will (
  client TEXT PRIMARY KEY, topic TEXT NOT NULL, qos INTEGER NOT NULL, retain INTEGER NOT NULL, payload BLOB NOT NULL,
  properties BLOB, expiry INTEGER, delay INTEGER NOT NULL DEFAULT 0, due INTEGER
) STRICT, WITHOUT ROWID;
-- QoS 2 messages of persistent sessions that are stored and not yet released by their sender.
CREATE TABLE incoming (s INTEGER NOT NULL, message_id INTEGER NOT NULL, PRIMARY KEY (s, message_id)) STRICT, WITHOUT ROWID;
`,
  },
]

export const formatVersion = migrations.at(-1)!.version
