-- What migrations 1 to 1 make of an empty file. Written by UPDATE=1 npx vitest run sqlite-schema.

CREATE TABLE closed (
  id INTEGER PRIMARY KEY,
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

CREATE TABLE expiry (
  hour INTEGER NOT NULL,
  scope INTEGER NOT NULL,
  prefix TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (hour, scope, prefix)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
  id INTEGER NOT NULL,
  expires INTEGER,
  sum INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  writes INTEGER NOT NULL DEFAULT 0,
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

CREATE TABLE open (
  scope INTEGER NOT NULL,
  key TEXT NOT NULL,
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
  sum INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE scopes (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  contract TEXT NOT NULL,
  sum INTEGER NOT NULL,
  UNIQUE (namespace, contract)
) STRICT;

