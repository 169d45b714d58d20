/**
 * The data format of one tenant's database file: numbered migrations, one idea each, never edited once
 * released. `formatVersion` is the last number; a file with a higher one is refused.
 *
 * What lives where: `log` is the one numbered log (observation blobs and entity changes, in arrival order);
 * `entity` the documents; `scalar`, `place` and `entity_type` the indexes over them; `chunk` the folded
 * history; `delivery` the outbox. Times are integer milliseconds UTC.
 */

export interface Migration {
  readonly version: number
  readonly title: string
  readonly sql: string
}

export const migrations: readonly Migration[] = [
  {
    version: 1,
    title: 'entities, log, history, subscriptions, deliveries, MQTT sessions',
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
-- First-level scalars: kind 1 number, 2 text, 3 boolean as 0/1, 4 a point on the globe as its Z-order cell.
CREATE TABLE scalar (
  name INTEGER NOT NULL, kind INTEGER NOT NULL, value ANY NOT NULL, rid INTEGER NOT NULL,
  PRIMARY KEY (name, kind, value, rid)
) STRICT, WITHOUT ROWID;
-- Which entities have an attribute at all (existence terms, attrs selection).
CREATE TABLE has_attribute (name INTEGER NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (name, rid)) STRICT, WITHOUT ROWID;
-- Bounding boxes of GeoProperties; lon and lat are exact for points, NULL otherwise.
CREATE VIRTUAL TABLE place USING rtree (i, x0, x1, y0, y1, +rid INTEGER, +name INTEGER, +lon REAL, +lat REAL);
CREATE TABLE place_of (rid INTEGER NOT NULL, name INTEGER NOT NULL, i INTEGER NOT NULL, PRIMARY KEY (rid, name, i)) STRICT, WITHOUT ROWID;
-- The last document of every deleted entity that had streams or a place in history.
CREATE TABLE tombstone (n INTEGER PRIMARY KEY, id TEXT NOT NULL, rid INTEGER NOT NULL, at INTEGER NOT NULL, doc TEXT NOT NULL) STRICT;
CREATE INDEX tombstone_id ON tombstone (id);

-- The one numbered log. kind 1 = observation blob, kind 2 = entity change (JSON). rid is set for kind 2.
CREATE TABLE log (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, rid INTEGER, body BLOB NOT NULL) STRICT;

-- A stream is one attribute instance that is observed; its number lives in log blobs and chunk keys.
-- folded = log number up to which its observations are in chunks; shape = JSON of the instance without
-- value and observedAt; mirror = name of the attribute rendered from observedAt, if any.
CREATE TABLE stream (
  s INTEGER PRIMARY KEY, rid INTEGER NOT NULL, name INTEGER NOT NULL, dataset TEXT NOT NULL,
  folded INTEGER NOT NULL DEFAULT 0, retired INTEGER NOT NULL DEFAULT 0, shape TEXT NOT NULL, mirror INTEGER
) STRICT;
CREATE INDEX stream_of ON stream (rid, name, dataset);
-- Folded history. k packs (stream, slot of t0): (s << 41) | slot. Chunks of a stream never overlap in time.
-- Changes that are no observations live in entity_history.
CREATE TABLE chunk (
  k INTEGER PRIMARY KEY, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, count INTEGER NOT NULL,
  min REAL, max REAL, sum REAL, sumsq REAL, codec INTEGER NOT NULL, shapes TEXT NOT NULL, body BLOB NOT NULL
) STRICT;
-- Folded entity changes: JSON lines, zstd, per entity and first log number. t0, t1: commit times of first and last.
CREATE TABLE entity_history (
  rid INTEGER NOT NULL, n0 INTEGER NOT NULL, n1 INTEGER NOT NULL, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL,
  count INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (rid, n0)
) STRICT;
-- What retention removed: count instances of a stream (s = 0: changes of entity rid) between t0 and t1. g grows with
-- each touch; the records g = 0 (size) and g = -1 (age) sum up those that were let go beyond the ceiling of records.
CREATE TABLE gap (
  g INTEGER PRIMARY KEY, s INTEGER NOT NULL, rid INTEGER NOT NULL, name INTEGER NOT NULL, t0 INTEGER NOT NULL,
  t1 INTEGER NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE INDEX gap_of ON gap (rid, s);

-- NGSI-LD subscriptions; doc is the subscription in internal form, stats the delivery counters as JSON.
CREATE TABLE subscription (i INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL, stats TEXT NOT NULL) STRICT;
-- The outbox. For an observation: stream, t, value (JSON) and no body; else the rendered data member.
CREATE TABLE delivery (
  d INTEGER PRIMARY KEY, sub INTEGER NOT NULL, endpoint TEXT NOT NULL, entity TEXT NOT NULL,
  at INTEGER NOT NULL, stream INTEGER, t INTEGER, value TEXT, body TEXT
) STRICT;
CREATE INDEX delivery_endpoint ON delivery (endpoint, d);
CREATE TABLE dead_letter (
  d INTEGER PRIMARY KEY, sub INTEGER NOT NULL, endpoint TEXT NOT NULL, entity TEXT NOT NULL, at INTEGER NOT NULL,
  buried INTEGER NOT NULL, reason TEXT NOT NULL, body TEXT NOT NULL
) STRICT;

-- User @contexts fetched or hosted.
CREATE TABLE context (url TEXT PRIMARY KEY, kind TEXT NOT NULL, fetched INTEGER NOT NULL, expires INTEGER, body TEXT NOT NULL) STRICT;

-- Frames that could not be decoded, or whose device is not accepted yet.
CREATE TABLE quarantine (q INTEGER PRIMARY KEY, at INTEGER NOT NULL, topic TEXT NOT NULL, source TEXT, content_type TEXT, retained INTEGER NOT NULL, transport TEXT NOT NULL, bridge TEXT, reason TEXT NOT NULL, payload BLOB NOT NULL) STRICT;

-- MQTT. sent = newest message of the session's queue ever sent, NULL while its client is connected.
CREATE TABLE session (s INTEGER PRIMARY KEY, client TEXT NOT NULL UNIQUE, seen INTEGER NOT NULL, sent INTEGER) STRICT;
CREATE TABLE session_filter (s INTEGER NOT NULL, filter TEXT NOT NULL, qos INTEGER NOT NULL, PRIMARY KEY (s, filter)) STRICT, WITHOUT ROWID;
-- Messages owed to sessions. k packs (session, place in its queue): s * 2^32 + place, from which the packet
-- identifier follows. released = 1 once PUBREC came (QoS 2): only PUBREL is still owed.
CREATE TABLE session_message (k INTEGER PRIMARY KEY, qos INTEGER NOT NULL, released INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL, topic TEXT NOT NULL, payload BLOB NOT NULL) STRICT;
CREATE TABLE retained (topic TEXT PRIMARY KEY, qos INTEGER NOT NULL, payload BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE will (client TEXT PRIMARY KEY, topic TEXT NOT NULL, qos INTEGER NOT NULL, retain INTEGER NOT NULL, payload BLOB NOT NULL) STRICT, WITHOUT ROWID;
-- QoS 2 messages of persistent sessions that are stored and not yet released by their sender.
CREATE TABLE incoming (s INTEGER NOT NULL, message_id INTEGER NOT NULL, PRIMARY KEY (s, message_id)) STRICT, WITHOUT ROWID;
`,
  },
  {
    version: 2,
    title: 'corrections of history by clients',
    sql: `
-- Instances of history that a client replaced (body is the instance as JSON) or removed (body is NULL), by instance id.
CREATE TABLE history_edit (rid INTEGER NOT NULL, instance TEXT NOT NULL, at INTEGER NOT NULL, body TEXT, PRIMARY KEY (rid, instance)) STRICT, WITHOUT ROWID;
-- What was recorded up to log number n and commit time at is gone for an attribute; name '' means all of the entity,
-- dataset '*' all instances.
CREATE TABLE history_erased (rid INTEGER NOT NULL, name TEXT NOT NULL, dataset TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (rid, name, dataset)) STRICT, WITHOUT ROWID;
-- Entities that came into being with their history; they go with it.
CREATE TABLE history_born (rid INTEGER PRIMARY KEY) STRICT;
CREATE INDEX tombstone_rid ON tombstone (rid);
`,
  },
  {
    version: 3,
    title: 'context sources',
    sql: `
-- Registrations of context sources and subscriptions to them: documents in internal form, counters as JSON.
-- r keeps the order of creation; i is negative, so that it never meets a number of the table subscription.
CREATE TABLE csource (r INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL, stats TEXT NOT NULL) STRICT;
CREATE TABLE csource_subscription (i INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL, stats TEXT NOT NULL) STRICT;
`,
  },
  {
    version: 4,
    title: 'which types have which attributes',
    sql: `
-- The shape of an entity is which types it has and which attributes of which kinds: an interned text of interned
-- names, "=type,type|attribute.kind,attribute.kind", each list ascending. Few shapes stand for many entities.
CREATE TABLE entity_shape (shape INTEGER NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (shape, rid)) STRICT, WITHOUT ROWID;
CREATE TEMP TABLE kind_of AS
  SELECT DISTINCT h.rid AS rid, h.name AS name, json_extract(i.value, '$.type') AS kind
  FROM has_attribute h JOIN name n ON n.i = h.name JOIN entity e ON e.rid = h.rid
  JOIN json_each(e.doc) a ON a.key = n.text
  JOIN json_each(CASE a.type WHEN 'array' THEN a.value ELSE json_array(json(a.value)) END) i;
INSERT OR IGNORE INTO name (text) SELECT DISTINCT kind FROM kind_of;
CREATE TEMP TABLE shape_of AS
  SELECT e.rid AS rid, '=' || coalesce(t.types, '') || '|' || coalesce(k.kinds, '') AS text
  FROM entity e
  LEFT JOIN (SELECT rid, group_concat(type, ',' ORDER BY type) AS types FROM entity_type GROUP BY rid) t ON t.rid = e.rid
  LEFT JOIN (
    SELECT k.rid AS rid, group_concat(k.name || '.' || n.i, ',' ORDER BY k.name, n.i) AS kinds
    FROM kind_of k JOIN name n ON n.text = k.kind GROUP BY k.rid
  ) k ON k.rid = e.rid;
INSERT OR IGNORE INTO name (text) SELECT DISTINCT text FROM shape_of;
INSERT INTO entity_shape (shape, rid) SELECT n.i, s.rid FROM shape_of s JOIN name n ON n.text = s.text;
DROP TABLE shape_of;
DROP TABLE kind_of;
`,
  },
  {
    version: 5,
    title: 'scopes in the scalar index',
    sql: `
INSERT OR IGNORE INTO name (text) SELECT '@scope' WHERE EXISTS (SELECT 1 FROM entity WHERE json_extract(doc, '$.scope') IS NOT NULL);
INSERT OR IGNORE INTO scalar (name, kind, value, rid)
  SELECT n.i, 2, substr(j.value, 1, 256), e.rid FROM entity e, json_each(e.doc, '$.scope') j, name n
  WHERE n.text = '@scope';
`,
  },
  {
    version: 7,
    title: 'entities and attributes that expire',
    sql: `
-- When something of an entity expires first; ms.
CREATE TABLE expiry (at INTEGER NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (at, rid)) STRICT, WITHOUT ROWID;
`,
  },
  {
    version: 8,
    title: 'hourly roll-ups of old history',
    sql: `
-- What is left of the numbers of a stream in an hour (ms of its beginning) when they were removed for their age.
CREATE TABLE rollup (
  s INTEGER NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL, min REAL NOT NULL, max REAL NOT NULL,
  sum REAL NOT NULL, sumsq REAL NOT NULL, PRIMARY KEY (s, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_hour ON rollup (hour);
`,
  },
  {
    version: 16,
    title: 'texts of every language in the scalar index',
    sql: `
INSERT OR IGNORE INTO scalar (name, kind, value, rid)
  SELECT h.name, 2, substr(t.value, 1, 256), h.rid
  FROM has_attribute h JOIN name n ON n.i = h.name JOIN entity e ON e.rid = h.rid
  JOIN json_each(e.doc) a ON a.key = n.text
  JOIN json_each(CASE a.type WHEN 'array' THEN a.value ELSE json_array(json(a.value)) END) i
  JOIN json_tree(i.value, '$.languageMap') t
  WHERE json_extract(i.value, '$.type') = 'LanguageProperty' AND t.type = 'text';
INSERT OR IGNORE INTO scalar (name, kind, value, rid)
  SELECT s.name, 5, 1, s.rid FROM scalar s JOIN name n ON n.i = s.name
  WHERE s.kind = 2 AND n.text <> '@scope' GROUP BY s.name, s.rid HAVING count(*) > 1;
`,
  },
  {
    version: 17,
    title: 'subscriptions passed on to context sources',
    sql: `
-- By the id at the source; doc names the subscription here, the source, and what is to be done there.
CREATE TABLE passed_subscription (id TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT, WITHOUT ROWID;
`,
  },
  {
    version: 20,
    title: 'last answers of context sources',
    sql: `
-- What a source whose registration allows copies told last to a question (key), as JSON; at is ms.
CREATE TABLE source_copy (key TEXT PRIMARY KEY, source TEXT NOT NULL, at INTEGER NOT NULL, answer TEXT NOT NULL) STRICT;
CREATE INDEX source_copy_source ON source_copy (source);
`,
  },
  {
    version: 30,
    title: 'uplinks, and when what is in a chunk was committed',
    sql: `
-- Commit times of the earliest and the latest instance of a chunk; a chunk from before this step may hold any.
ALTER TABLE chunk ADD COLUMN m0 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunk ADD COLUMN m1 INTEGER NOT NULL DEFAULT 253402300799999;
CREATE INDEX chunk_modified ON chunk (m1, m0);
CREATE INDEX tombstone_at ON tombstone (at);
CREATE INDEX entity_history_at ON entity_history (t1, t0);
-- What another broker will not take, with its reason; step is what was to be done, as JSON.
CREATE TABLE uplink_refusal (q INTEGER PRIMARY KEY, uplink TEXT NOT NULL, entity TEXT NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, step TEXT NOT NULL) STRICT;
-- How far each uplink is, as JSON, by the id of its subscription.
CREATE TABLE uplink (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
`,
  },
  {
    version: 41,
    title: 'through which other brokers things came',
    sql: `
-- Pseudonyms, the first that had it first; null where it began here. Of change records their bodies tell it.
ALTER TABLE log ADD COLUMN heard TEXT;
-- Through whom a deleted entity had been created.
ALTER TABLE tombstone ADD COLUMN heard TEXT;
`,
  },
  {
    version: 43,
    title: 'what was done at other brokers, and copies from there',
    sql: `
-- Registrations and subscriptions of ours at other brokers, as JSON, by kind and id.
CREATE TABLE downward_note (key TEXT PRIMARY KEY, doc TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- Entities that are copies from another broker; source is the name of the setting that brought them.
CREATE TABLE entity_copy (id TEXT PRIMARY KEY, source TEXT NOT NULL) STRICT, WITHOUT ROWID;
`,
  },
  {
    version: 44,
    title: 'log rows with times by a clock that was not set',
    sql: `
-- kind 5 and 6 are 1 and 2 with times by a clock that was not set yet; they become 1 and 2 when it is.
CREATE INDEX log_unsettled ON log (n) WHERE kind > 4;
`,
  },
  {
    version: 45,
    title: 'which attributes have arrays or objects, in the scalar index',
    sql: `
-- kind 6 marks an array or an object, which an order compares as such; a point has its cell.
INSERT OR IGNORE INTO scalar (name, kind, value, rid)
  SELECT h.name, 6, 1, h.rid
  FROM has_attribute h JOIN name n ON n.i = h.name JOIN entity e ON e.rid = h.rid
  JOIN json_each(e.doc) a ON a.key = n.text
  JOIN json_each(CASE a.type WHEN 'array' THEN a.value ELSE json_array(json(a.value)) END) i
  JOIN json_each(i.value) m ON m.key IN ('value', 'object', 'vocab', 'json', 'valueList', 'objectList')
  WHERE m.type IN ('array', 'object') AND json_extract(i.value, '$.type') <> 'LanguageProperty'
    AND NOT (json_extract(i.value, '$.type') = 'GeoProperty' AND json_extract(i.value, '$.value.type') = 'Point');
`,
  },
  {
    version: 46,
    title: 'when deleted entities had been created',
    sql: `
-- ms; null where that was not kept.
ALTER TABLE tombstone ADD COLUMN created INTEGER;
`,
  },
  {
    version: 47,
    title: 'what gaps of history are of, for those who had not been told it',
    sql: `
-- since = when the record began (ms), m1 = commit time of the last that went; owner = id and type of the entity as JSON,
-- where its tombstone is gone, too.
ALTER TABLE gap ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gap ADD COLUMN m1 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gap ADD COLUMN owner TEXT;
UPDATE gap SET since = at, m1 = at;
`,
  },
  {
    version: 48,
    title: 'what uplinks let go and have not told yet, in rows of its own',
    sql: `
-- What of an attribute did not go up, as JSON, by stream and reason.
CREATE TABLE uplink_loss (uplink TEXT NOT NULL, of TEXT NOT NULL, loss TEXT NOT NULL, PRIMARY KEY (uplink, of)) STRICT, WITHOUT ROWID;
INSERT INTO uplink_loss SELECT uplink.id, one.key, one.value FROM uplink, json_each(uplink.state, '$.losses') AS one;
UPDATE uplink SET state = json_remove(state, '$.losses');
`,
  },
  {
    version: 49,
    title: 'which gaps of history somebody had to be told of',
    sql: `
-- 1 where somebody followed who had not been told of some of it when that went.
ALTER TABLE gap ADD COLUMN owed INTEGER NOT NULL DEFAULT 0;
`,
  },
  {
    version: 50,
    title: 'times of attributes in groups, from the creation of their entity',
    sql: `
-- Rows are written so from now on; those that are there stay as they are until they change, and both are read.
`,
  },
  {
    version: 51,
    title: 'notifications of one batch operation share a request',
    sql: `
-- Deliveries of one subscription with the same number here, of one batch operation, may share a notification.
ALTER TABLE delivery ADD COLUMN batch INTEGER;
`,
  },
  {
    version: 52,
    title: 'what MQTT 5 says about sessions, subscriptions and messages',
    sql: `
-- Session expiry interval in seconds; NULL where the session ends by age.
ALTER TABLE session ADD COLUMN expiry INTEGER;
-- options: 1 No Local, 2 Retain As Published.
ALTER TABLE session_filter ADD COLUMN options INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_filter ADD COLUMN identifier INTEGER;
-- properties: those that subscribers get, as bytes of MQTT 5. expires: ms.
ALTER TABLE session_message ADD COLUMN retain INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_message ADD COLUMN properties BLOB;
ALTER TABLE session_message ADD COLUMN expires INTEGER;
ALTER TABLE retained ADD COLUMN properties BLOB;
ALTER TABLE retained ADD COLUMN expires INTEGER;
-- expiry of the message and delay of the will in seconds; due: when it is published (ms), NULL while its client is connected.
ALTER TABLE will ADD COLUMN properties BLOB;
ALTER TABLE will ADD COLUMN expiry INTEGER;
ALTER TABLE will ADD COLUMN delay INTEGER NOT NULL DEFAULT 0;
ALTER TABLE will ADD COLUMN due INTEGER;
`,
  },
]

export const formatVersion = migrations.at(-1)!.version
