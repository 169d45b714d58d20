/**
 * The tables of the index, in a database file of its own. A node is the number of an id that an entity or a
 * relationship uses. An entry is an entity as one broker sent it. If several brokers have an id, the first
 * one takes precedence (`node.prime`), and all tables except `entry` describe its version. Times are ms.
 */
export const tables: readonly string[] = [
  `
-- Indexed brokers; 1 is the gateway's own. position: log number up to which the index is complete (own broker
-- only). generation increases with each full read; entries of earlier generations were not found again.
CREATE TABLE broker (
  b INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, host TEXT NOT NULL UNIQUE, origin TEXT NOT NULL,
  state TEXT NOT NULL, since INTEGER NOT NULL, position INTEGER, generation INTEGER NOT NULL DEFAULT 0,
  load TEXT, facts TEXT NOT NULL DEFAULT '{}'
) STRICT;
-- Number of entities of each kind that a broker has.
CREATE TABLE tally (b INTEGER NOT NULL, kind INTEGER NOT NULL, entities INTEGER NOT NULL, PRIMARY KEY (b, kind)) STRICT, WITHOUT ROWID;

-- Attribute names; a sub-attribute follows its attribute after a space: 'attribute sub-attribute'.
CREATE TABLE name (k INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE node (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, prime INTEGER, kinds INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE entry (
  i INTEGER PRIMARY KEY, n INTEGER NOT NULL, b INTEGER NOT NULL, kinds INTEGER NOT NULL, generation INTEGER NOT NULL,
  created INTEGER NOT NULL, doc TEXT NOT NULL, UNIQUE (n, b)
) STRICT;
CREATE INDEX entry_of ON entry (b, n);

CREATE TABLE kind (kind INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (kind, n)) STRICT, WITHOUT ROWID;
-- Values: numbers, texts (cut), booleans as x'00' and x'01'; x'' if an attribute has no comparable value.
CREATE TABLE scalar (n INTEGER NOT NULL, k INTEGER NOT NULL, value ANY NOT NULL, PRIMARY KEY (n, k, value)) STRICT, WITHOUT ROWID;
CREATE INDEX scalar_value ON scalar (k, value, n);
CREATE TABLE link (n INTEGER NOT NULL, k INTEGER NOT NULL, target INTEGER NOT NULL, PRIMARY KEY (n, k, target)) STRICT, WITHOUT ROWID;
CREATE INDEX link_to ON link (target, n, k);

-- An entity's own words, and its places as a JSON array of geometries.
CREATE TABLE own (n INTEGER PRIMARY KEY, words TEXT NOT NULL, places TEXT NOT NULL) STRICT;
-- The same including what related entities contribute; place searches use these kinds.
CREATE TABLE derived (n INTEGER PRIMARY KEY, words TEXT NOT NULL, places TEXT NOT NULL, kinds INTEGER NOT NULL) STRICT;
CREATE TABLE place (p INTEGER PRIMARY KEY, n INTEGER NOT NULL, geometry TEXT NOT NULL) STRICT;
CREATE INDEX place_of ON place (n);
-- The third dimension is the kind, so that the R-tree separates streams from sensors.
CREATE VIRTUAL TABLE spot USING rtree (s, x0, x1, y0, y1, z0, z1, +p INTEGER, +n INTEGER);
CREATE TABLE spot_of (p INTEGER NOT NULL, s INTEGER NOT NULL, PRIMARY KEY (p, s)) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE word USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
-- Nodes whose derived rows are stale. spread: for how many links the nodes that link to them are stale too.
-- behind: the last of those nodes that was marked.
CREATE TABLE stale (n INTEGER PRIMARY KEY, spread INTEGER NOT NULL, behind INTEGER NOT NULL DEFAULT 0) STRICT;

-- For streams: begin and end, if known. For observations: time of the last one.
CREATE TABLE span (n INTEGER PRIMARY KEY, begins INTEGER, ends INTEGER, seen INTEGER) STRICT;
`,
  `
-- An index for word prefixes of up to three letters; without it, a prefix search scans all words.
DROP TABLE word;
CREATE VIRTUAL TABLE word USING fts5 (text, content = '', contentless_delete = 1, prefix = '1 2 3', tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO word (rowid, text) SELECT n, words FROM derived WHERE words <> '';
`,
]
