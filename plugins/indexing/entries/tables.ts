/**
 * The tables of the index, in a file of its own. A node is the number of an id, whether an entity of that id is known or only
 * a relationship names it. An entry is an entity as one broker tells it; where several brokers tell of one id, the first of
 * them speaks (`node.prime`), and everything but `entry` is about what it says. Times are ms.
 */
export const tables: readonly string[] = [
  `
-- Brokers whose entities are indexed; 1 is the gateway's own. position: log number that all derived rows include (own broker only).
-- generation grows with each full reading; an entry of a generation before was not found any more.
CREATE TABLE broker (
  b INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, host TEXT NOT NULL UNIQUE, origin TEXT NOT NULL,
  state TEXT NOT NULL, since INTEGER NOT NULL, position INTEGER, generation INTEGER NOT NULL DEFAULT 0,
  load TEXT, facts TEXT NOT NULL DEFAULT '{}'
) STRICT;
-- How many entities of each kind a broker tells of.
CREATE TABLE tally (b INTEGER NOT NULL, kind INTEGER NOT NULL, entities INTEGER NOT NULL, PRIMARY KEY (b, kind)) STRICT, WITHOUT ROWID;

-- Names of attributes; those below others are joined by blanks: 'attribute sub-attribute'.
CREATE TABLE name (k INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE node (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, prime INTEGER, kinds INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE entry (
  i INTEGER PRIMARY KEY, n INTEGER NOT NULL, b INTEGER NOT NULL, kinds INTEGER NOT NULL, generation INTEGER NOT NULL,
  created INTEGER NOT NULL, doc TEXT NOT NULL, UNIQUE (n, b)
) STRICT;
CREATE INDEX entry_of ON entry (b, n);

CREATE TABLE kind (kind INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (kind, n)) STRICT, WITHOUT ROWID;
-- Values: numbers, texts (cut), booleans as x'00' and x'01'; x'' where an attribute has no such value.
CREATE TABLE scalar (n INTEGER NOT NULL, k INTEGER NOT NULL, value ANY NOT NULL, PRIMARY KEY (n, k, value)) STRICT, WITHOUT ROWID;
CREATE INDEX scalar_value ON scalar (k, value, n);
CREATE TABLE link (n INTEGER NOT NULL, k INTEGER NOT NULL, target INTEGER NOT NULL, PRIMARY KEY (n, k, target)) STRICT, WITHOUT ROWID;
CREATE INDEX link_to ON link (target, n, k);

-- What an entity says itself: words, and places as a JSON array of geometries.
CREATE TABLE own (n INTEGER PRIMARY KEY, words TEXT NOT NULL, places TEXT NOT NULL) STRICT;
-- The same with what follows from its partners; searched by place and words, by place under these kinds.
CREATE TABLE derived (n INTEGER PRIMARY KEY, words TEXT NOT NULL, places TEXT NOT NULL, kinds INTEGER NOT NULL) STRICT;
CREATE TABLE place (p INTEGER PRIMARY KEY, n INTEGER NOT NULL, geometry TEXT NOT NULL) STRICT;
CREATE INDEX place_of ON place (n);
-- One dimension more for the kind, so that streams and sensors of a place are told apart by the tree.
CREATE VIRTUAL TABLE spot USING rtree (s, x0, x1, y0, y1, z0, z1, +p INTEGER, +n INTEGER);
CREATE TABLE spot_of (p INTEGER NOT NULL, s INTEGER NOT NULL, PRIMARY KEY (p, s)) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE word USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
-- Nodes whose derived rows are to be made anew, and whether those that link to them are too: for how many steps, and behind
-- which of them it goes on.
CREATE TABLE stale (n INTEGER PRIMARY KEY, spread INTEGER NOT NULL, behind INTEGER NOT NULL DEFAULT 0) STRICT;

-- Of streams when they begin and end as far as they say so; of observations when the last one was made.
CREATE TABLE span (n INTEGER PRIMARY KEY, begins INTEGER, ends INTEGER, seen INTEGER) STRICT;
`,
  `
-- Beginnings of words of up to three letters are looked up; those of all words would be walked through.
DROP TABLE word;
CREATE VIRTUAL TABLE word USING fts5 (text, content = '', contentless_delete = 1, prefix = '1 2 3', tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO word (rowid, text) SELECT n, words FROM derived WHERE words <> '';
`,
]
