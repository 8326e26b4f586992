-- What migrations 1 to 2 make of an empty file. Written by UPDATE=1 npx vitest run sqlite-schema.

CREATE VIEW operations AS SELECT
  namespace,
  contract || key AS key,
  CASE status WHEN 0 THEN 'running' WHEN 1 THEN 'succeeded' WHEN 2 THEN 'failed' WHEN 3 THEN 'released'
    ELSE 'unknown' END AS status,
  coalesce(rare ->> '$.attempts', 1) AS attempts,
  CASE WHEN status = 0 AND rare ->> '$.lease[0]' = anchor_boot THEN
    datetime((anchor_wall + (rare ->> '$.lease[1]') - anchor_uptime) / 1000, 'unixepoch') END AS locked_until,
  owner,
  args,
  result,
  rare ->> '$.error.message' AS error,
  datetime(created / 1000, 'unixepoch') AS created_at,
  datetime((created + settled) / 1000, 'unixepoch') AS settled_at,
  datetime((created + expires) / 1000, 'unixepoch') AS expires_at
FROM (SELECT *, CASE WHEN json_valid(more) THEN more END AS rare FROM records)
  JOIN scopes ON scopes.id = scope CROSS JOIN meta;

CREATE TABLE events (
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
  n INTEGER NOT NULL,
  at INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  type TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (scope, key, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  writes INTEGER NOT NULL DEFAULT 0,
  all_sum INTEGER NOT NULL DEFAULT 0,
  open_sum INTEGER NOT NULL DEFAULT 0,
  schema INTEGER NOT NULL,
  incarnation TEXT NOT NULL,
  floor INTEGER NOT NULL DEFAULT 0,
  moved_to TEXT,
  came_from TEXT,
  filling INTEGER NOT NULL DEFAULT 0,
  anchor_boot TEXT NOT NULL,
  anchor_wall INTEGER NOT NULL,
  anchor_uptime INTEGER NOT NULL,
  anchor_seen INTEGER NOT NULL,
  loss_at INTEGER,
  loss_by TEXT,
  loss_note TEXT,
  backup_at INTEGER
) STRICT;

CREATE TABLE outbox (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  contract TEXT NOT NULL,
  version TEXT NOT NULL,
  group_name TEXT,
  fingerprint TEXT,
  caller TEXT,
  call TEXT NOT NULL,
  staged INTEGER NOT NULL,
  due INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  generation INTEGER,
  reason TEXT,
  drift TEXT,
  UNIQUE (namespace, key)
) STRICT;

CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
  key_sum INTEGER NOT NULL,
  status INTEGER NOT NULL,
  flags INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  token BLOB,
  version TEXT NOT NULL,
  owner TEXT NOT NULL,
  created INTEGER NOT NULL,
  settled INTEGER,
  expires INTEGER,
  args TEXT,
  content TEXT,
  result TEXT,
  asker TEXT,
  more TEXT,
  sum INTEGER NOT NULL
) STRICT;

CREATE TABLE scopes (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  contract TEXT NOT NULL,
  sum INTEGER NOT NULL,
  UNIQUE (namespace, contract)
) STRICT;

CREATE INDEX open_records ON records (status) WHERE status IN (0, 4);

CREATE INDEX outbox_due ON outbox (namespace, due, n) WHERE state < 2;

CREATE INDEX outbox_groups ON outbox (namespace, group_name, n) WHERE group_name IS NOT NULL;

CREATE INDEX record_expiry ON records ((created + expires) / 1000) WHERE expires IS NOT NULL;

CREATE UNIQUE INDEX record_keys ON records (scope, key, key_sum);

