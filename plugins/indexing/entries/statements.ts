/** The prepared SQL statements of the index. `conditions.ts` builds the conditions of queries. */
import { limits } from '#base/limits/limits.ts'
import type { PluginDatabase, PluginStatement } from '#contract'
import type { IndexSql } from './conditions.ts'
import { kindNames, kinds } from './entity-kinds.ts'

export type Statements = ReturnType<typeof prepareStatements>

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
    hasKinds: sql(
      'SELECT EXISTS (SELECT 1 FROM json_each(?) AS slice CROSS JOIN node ON node.id = slice.value WHERE kinds = ?)',
    ).pluck(),
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
    unmarked: sql(
      'SELECT entry.n, id FROM entry JOIN node ON node.n = entry.n WHERE b = ? AND entry.n > ? AND generation < ? ORDER BY entry.n LIMIT ?',
    ),
    generation: sql('SELECT generation FROM broker WHERE b = ?').pluck(),
    nextGeneration: sql('UPDATE broker SET generation = generation + 1 WHERE b = ?'),
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
    derived: sql('SELECT words, places, kinds FROM derived WHERE n = ?'),
    putDerived: sql('INSERT OR REPLACE INTO derived (n, words, places, kinds) VALUES (?, ?, ?, ?)'),
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

/** A node with one of its places and that place's bounding box. */
type Spot = readonly [n: number, p: number, x0: number, x1: number, y0: number, y1: number]

/** Prepared statements for queries. Statements with variable text are kept in a bounded cache. */
export type QueryStatements = ReturnType<typeof prepareQueryStatements>

export function prepareQueryStatements(database: PluginDatabase, belongs: () => readonly number[]) {
  const sql = (text: string) => database.prepare(text)
  const kept = new Map<string, PluginStatement>()
  const dynamic = (text: string): PluginStatement => {
    const known = kept.get(text)
    if (known !== undefined) return known
    if (kept.size >= limits.indexStatementsKept.value) kept.delete(kept.keys().next().value!)
    const statement = sql(text)
    kept.set(text, statement)
    return statement
  }
  const seenBy = (from: string): string =>
    `SELECT slice.value, l.n, span.seen ${each} ${from} CROSS JOIN span ON span.n = l.n WHERE span.seen NOT NULL`
  return {
    ...fixedQueries(sql),
    /** Nodes of the given kinds after a number. */
    walk(bits: number, behind: number, most: number): number[] {
      const one = 'SELECT n FROM (SELECT n FROM kind WHERE kind = ? AND n > ? ORDER BY n LIMIT ?)'
      const wanted = kindNames.map((name) => kinds[name]).filter((kind) => (bits & kind) !== 0)
      const text = `${wanted.map(() => one).join(' UNION ')} ORDER BY n LIMIT ?`
      return dynamic(text)
        .pluck()
        .all(...wanted.flatMap((kind) => [kind, behind, most]), most) as number[]
    },
    /** Nodes that a condition's value search finds, without duplicates. */
    driven: ({ text, parameters }: IndexSql, most: number): number[] =>
      dynamic(`SELECT DISTINCT * FROM (${text}) LIMIT ?`)
        .pluck()
        .all(...parameters, most) as number[],
    /** Spots in a box whose nodes satisfy all conditions. */
    spots(conditions: readonly IndexSql[]): (box: readonly number[]) => Spot[] {
      const all = [within, ...conditions.map(({ text }) => text)].join(' AND ')
      const statement = dynamic(
        // Conditions use node.n, and the R-tree stores it, so no join is needed.
        `SELECT node.n, p, x0, x1, y0, y1 FROM spot AS node WHERE ${all}`,
      ).raw()
      const parameters = conditions.flatMap((condition) => condition.parameters)
      return (box) => statement.all(...box, ...parameters) as Spot[]
    },
    /** The nodes of a slice that satisfy all conditions, with their kinds. */
    narrowed(conditions: readonly IndexSql[]): (slice: readonly number[]) => [n: number, bits: number][] {
      const all = ['node.prime NOT NULL', ...conditions.map(({ text }) => text)].join(' AND ')
      const statement = dynamic(
        `SELECT node.n, node.kinds ${each} node ON node.n = slice.value WHERE ${all}`,
      ).raw()
      const parameters = conditions.flatMap((condition) => condition.parameters)
      return (slice) => statement.all(JSON.stringify(slice), ...parameters) as [number, number][]
    },
    /**
     * Observations of streams and sensors of a slice: those of a stream, made by a sensor, or of a sensor's
     * stream.
     */
    observations(slice: string): [n: number, observation: number, seen: number][] {
      const [belongsTo, madeBySensor, generatedBy] = belongs()
      const text = [
        seenBy('link l ON l.target = slice.value AND l.k IN (?, ?)'),
        seenBy(
          'link g ON g.target = slice.value AND g.k = ? CROSS JOIN link l ON l.target = g.n AND l.k = ?',
        ),
      ].join(' UNION ALL ')
      return dynamic(text).raw().all(slice, belongsTo, madeBySensor, slice, generatedBy, belongsTo) as [
        number,
        number,
        number,
      ][]
    },
  }
}

/** West, east, south and north of a box, and the kind twice. */
const within = 'x1 >= ? AND x0 <= ? AND y1 >= ? AND y0 <= ? AND z1 >= ? AND z0 <= ?'

/** Joins each node of a slice, which is a JSON array. */
const each = 'FROM json_each(?) AS slice CROSS JOIN'

function intervalBy(step: number, of: string, links: string): string {
  const hops = links === '' ? '' : `${links} CROSS JOIN`
  return `SELECT slice.value, json_extract(entry.doc, '$."https://w3id.org/iot/qoi#updateinterval"'), ${step} AS step ${each} ${hops} node ON node.n = ${of} CROSS JOIN entry ON entry.n = node.n AND entry.b = node.prime`
}

function fixedQueries(sql: PluginDatabase['prepare']) {
  return {
    docs: sql(
      `SELECT node.n, entry.doc ${each} node ON node.n = slice.value CROSS JOIN entry ON entry.n = node.n AND entry.b = node.prime`,
    ).raw(),
    docOf: sql(
      'SELECT entry.doc FROM node CROSS JOIN entry ON entry.n = node.n AND entry.b = node.prime WHERE node.id = ?',
    ).pluck(),
    hasScalar: sql('SELECT EXISTS (SELECT 1 FROM scalar WHERE k = ?)').pluck(),
    spotsWithin: sql(`SELECT count(*) FROM (SELECT 1 FROM spot WHERE ${within} LIMIT ?)`).pluck(),
    geometry: sql('SELECT geometry FROM place WHERE p = ?').pluck(),
    geometries: sql(`SELECT place.n, place.geometry ${each} place ON place.n = slice.value`).raw(),
    seen: sql(
      `SELECT slice.value, span.seen ${each} span ON span.n = slice.value WHERE span.seen NOT NULL`,
    ).raw(),
    /** Update intervals of the nodes, then of their sensors, then of the sensors of their streams. */
    intervals: sql(
      `${[
        intervalBy(0, 'slice.value', ''),
        intervalBy(1, 'l.target', 'link l ON l.n = slice.value AND l.k IN (?, ?)'),
        intervalBy(
          2,
          'g.target',
          'link l ON l.n = slice.value AND l.k = ? CROSS JOIN link g ON g.n = l.target AND g.k = ?',
        ),
      ].join(' UNION ALL ')} ORDER BY step`,
    ).raw(),
    matching: sql('SELECT rowid FROM word WHERE word MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?').pluck(),
    matchingWithin: sql(
      'SELECT rowid FROM word WHERE word MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid',
    ).pluck(),
    spans: sql(
      `SELECT node.n, entry.created, span.begins, span.ends ${each} node ON node.n = slice.value CROSS JOIN entry ON entry.n = node.n AND entry.b = node.prime LEFT JOIN span ON span.n = node.n`,
    ).raw(),
  }
}
