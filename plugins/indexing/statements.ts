/**
 * The SQL by which the index is written, prepared once. What is selected is in `conditions.ts` and `selecting.ts`.
 */
import type { PluginDatabase } from '#contract'

export type Statements = ReturnType<typeof prepareStatements>

export type BrokerStatements = ReturnType<typeof prepareBrokerStatements>

export function prepareStatements(database: PluginDatabase) {
  const sql = (text: string) => database.prepare(text)
  return { ...entries(sql), ...derivedRows(sql) }
}

function entries(sql: PluginDatabase['prepare']) {
  return {
    name: sql('SELECT k FROM name WHERE text = ?').pluck(),
    addName: sql('INSERT INTO name (text) VALUES (?)'),
    node: sql('SELECT n FROM node WHERE id = ?').pluck(),
    addNode: sql('INSERT INTO node (id) VALUES (?)'),
    nodeRow: sql('SELECT n, id, prime, kinds FROM node WHERE n = ?'),
    speak: sql('UPDATE node SET prime = ?, kinds = ? WHERE n = ?'),
    dropNode: sql(
      'DELETE FROM node WHERE n = ? AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.n = node.n) AND NOT EXISTS (SELECT 1 FROM link WHERE link.target = node.n)',
    ),

    entry: sql('SELECT kinds, generation, created, doc FROM entry WHERE n = ? AND b = ?'),
    firstEntry: sql('SELECT b, kinds, created, doc FROM entry WHERE n = ? ORDER BY b LIMIT 1'),
    putEntry: sql(
      'INSERT INTO entry (n, b, kinds, generation, created, doc) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (n, b) DO UPDATE SET kinds = excluded.kinds, generation = excluded.generation, created = excluded.created, doc = excluded.doc',
    ),
    touchEntry: sql('UPDATE entry SET generation = ? WHERE n = ? AND b = ?'),
    dropEntry: sql('DELETE FROM entry WHERE n = ? AND b = ?'),
    entriesOf: sql('SELECT n, generation FROM entry WHERE b = ? AND n > ? ORDER BY n LIMIT ?'),
    generation: sql('SELECT generation FROM broker WHERE b = ?').pluck(),
    nextGeneration: sql('UPDATE broker SET generation = generation + 1 WHERE b = ?'),
    note: sql('UPDATE broker SET position = ? WHERE b = ?'),
    tallies: sql('SELECT kind, entities FROM tally WHERE b = ?'),
    tally: sql(
      'INSERT INTO tally (b, kind, entities) VALUES (?, ?, ?) ON CONFLICT (b, kind) DO UPDATE SET entities = entities + excluded.entities',
    ),

    addKind: sql('INSERT OR IGNORE INTO kind (kind, n) VALUES (?, ?)'),
    dropKinds: sql('DELETE FROM kind WHERE kind = ? AND n = ?'),
    scalars: sql('SELECT k, value FROM scalar WHERE n = ?').raw(),
    addScalar: sql('INSERT OR IGNORE INTO scalar (n, k, value) VALUES (?, ?, ?)'),
    dropScalar: sql('DELETE FROM scalar WHERE n = ? AND k = ? AND value = ?'),
    links: sql('SELECT k, target FROM link WHERE n = ?').raw(),
    addLink: sql('INSERT OR IGNORE INTO link (n, k, target) VALUES (?, ?, ?)'),
    dropLink: sql('DELETE FROM link WHERE n = ? AND k = ? AND target = ?'),
    targets: sql('SELECT target FROM link WHERE n = ? AND k = ?').pluck(),
    linking: sql('SELECT DISTINCT n FROM link WHERE target = ? AND n > ? ORDER BY n LIMIT ?').pluck(),
  }
}

function derivedRows(sql: PluginDatabase['prepare']) {
  return {
    own: sql('SELECT words, places FROM own WHERE n = ?'),
    putOwn: sql('INSERT OR REPLACE INTO own (n, words, places) VALUES (?, ?, ?)'),
    dropOwn: sql('DELETE FROM own WHERE n = ?'),
    derived: sql('SELECT words, places FROM derived WHERE n = ?'),
    putDerived: sql('INSERT OR REPLACE INTO derived (n, words, places) VALUES (?, ?, ?)'),
    dropDerived: sql('DELETE FROM derived WHERE n = ?'),
    places: sql('SELECT p FROM place WHERE n = ?').pluck(),
    addPlace: sql('INSERT INTO place (n, geometry) VALUES (?, ?)'),
    dropPlaces: sql('DELETE FROM place WHERE n = ?'),
    spots: sql('SELECT s FROM spot_of WHERE p = ?').pluck(),
    addSpot: sql('INSERT INTO spot (x0, x1, y0, y1, z0, z1, p, n) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'),
    addSpotOf: sql('INSERT INTO spot_of (p, s) VALUES (?, ?)'),
    dropSpot: sql('DELETE FROM spot WHERE s = ?'),
    dropSpotsOf: sql('DELETE FROM spot_of WHERE p = ?'),
    addWords: sql('INSERT INTO word (rowid, text) VALUES (?, ?)'),
    dropWords: sql('DELETE FROM word WHERE rowid = ?'),

    stale: sql('SELECT n, spread, behind FROM stale ORDER BY n LIMIT 1'),
    isStale: sql('SELECT EXISTS (SELECT 1 FROM stale)').pluck(),
    addStale: sql(
      'INSERT INTO stale (n, spread) VALUES (?, ?) ON CONFLICT (n) DO UPDATE SET spread = max(spread, excluded.spread), behind = 0',
    ),
    moveStale: sql('UPDATE stale SET behind = ? WHERE n = ?'),
    dropStale: sql('DELETE FROM stale WHERE n = ?'),

    span: sql('SELECT begins, ends, seen FROM span WHERE n = ?'),
    putSpan: sql('INSERT OR REPLACE INTO span (n, begins, ends, seen) VALUES (?, ?, ?, ?)'),
    see: sql('UPDATE span SET seen = ? WHERE n = ?'),
    dropSpan: sql('DELETE FROM span WHERE n = ?'),
  }
}

const brokerColumns = 'b, key, host, origin, state, since, position, load, facts'

export function prepareBrokerStatements(database: PluginDatabase) {
  const sql = (text: string) => database.prepare(text)
  return {
    all: sql(`SELECT ${brokerColumns} FROM broker ORDER BY b`),
    get: sql(`SELECT ${brokerColumns} FROM broker WHERE b = ?`),
    byHost: sql(`SELECT ${brokerColumns} FROM broker WHERE host = ?`),
    byKey: sql(`SELECT ${brokerColumns} FROM broker WHERE key = ?`),
    last: sql('SELECT max(b) FROM broker').pluck(),
    add: sql('INSERT INTO broker (b, key, host, origin, state, since, facts) VALUES (?, ?, ?, ?, ?, ?, ?)'),
    set: sql(
      'UPDATE broker SET host = ?, state = ?, since = ?, position = ?, load = ?, facts = ? WHERE b = ?',
    ),
    forgetTally: sql('DELETE FROM tally WHERE b = ?'),
    remove: sql('DELETE FROM broker WHERE b = ?'),
  }
}
