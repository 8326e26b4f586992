// The Lua scripts. They compare and write, and never decide. All keys of a script are in one bucket, and so in one slot of
// a cluster.

import { createHash } from 'node:crypto';
import { boundedTypes, maxKept } from '../../../store/kept-events.ts';
import { encodeHead, statusAt } from '../rows.ts';

export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** A newer program that writes what this one cannot read raises `writer` in the ledger's `meta`. */
export const layoutVersion = 1;

const clock = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

// No ledger counts this far. A higher count was tampered with, and no fence could ever exceed it.
export const mostCount = 9_000_000_000_000_000;
const counts = `local function isCount(text)
  return text and string.find(text, '^%d+$') and tonumber(text) < ${mostCount}
end
`;

// A ledger with another id, or behind what the caller has seen, has lost writes. That is recorded in `lost`, for programs
// that start later; but another ledger at this address is left alone.
const sameLedger = `${counts}local meta = redis.call('HMGET', KEYS[2], 'id', 'seq', 'floor', 'lost', 'closed', 'writer', 'evicted', 'start')
local isOther = meta[1] and meta[1] ~= ARGV[1]
local isWhole = isCount(meta[2]) and isCount(meta[3])
if meta[4] or not meta[1] or isOther or not isWhole or tonumber(meta[2]) < tonumber(ARGV[2]) then
  if not meta[4] and not isOther then redis.call('HSET', KEYS[2], 'lost', ARGV[1]) end
  return redis.error_reply('SEMELFORGOT')
end
`;

// `closed` holds the error with which users are refused, whatever the reason.
const sentinel = `${sameLedger}if meta[5] then return redis.error_reply('SEMEL' .. meta[5]) end
if tonumber(ARGV[3]) < tonumber(meta[6]) then return redis.error_reply('SEMELOLD') end
`;

// An evicted record looks as if it had never existed. The server counts evictions from 0 at each start; `meta` keeps the
// last count and the run id of that start. A count that was reset starts again.
const readInfo = `local function readInfo(section, pattern)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and string.match(info, pattern) or ''
end
local function evicted() return readInfo('stats', 'evicted_keys:(%d+)') end
local function start() return readInfo('server', 'run_id:(%w+)') end
`;
const noEviction = `${readInfo}local function hasEvicted()
  local count = evicted()
  if count == meta[7] then return false end
  local before = start() == meta[8] and tonumber(meta[7]) or 0
  if (tonumber(count) or 0) > before then return true end
  redis.call('HSET', KEYS[2], 'evicted', count, 'start', start())
  return false
end
`;

// An entry of a due list: the names' common prefix, then the rest of each name, every part after its length. Never splits a
// character, so that every driver can read it as text.
const filing = `local function part(text) return #text .. ':' .. text end
local function file(slots, list, slot, records, from, common)
  local parts = {part(string.sub(records[1], from, common - 1))}
  for i = 1, #records do parts[i + 1] = part(string.sub(records[i], common)) end
  if redis.call('RPUSH', list, table.concat(parts)) == 1 then redis.call('ZADD', slots, slot, slot) end
end
`;

// What a record is compared by. A value that semel did not write never matches.
const head = `local function head(value) return value and string.sub(value, 1, ${encodeHead(0).length}) or '' end
`;

/** KEYS: record. */
export const look: Script = script(`${clock}return {now, redis.call('GET', KEYS[1])}`);

// Events are appended, and of what callers and executors repeat only the latest stay.
const history = `local long = {}
local function add(list, event)
  if redis.call('RPUSH', list, event) > ${maxKept} then long[list] = true end
end
local bounded = {${boundedTypes.flatMap((types, nth) => types.map((type) => `${type} = ${nth + 1}`)).join(', ')}}
local function dropOld()
  for list in pairs(long) do
    local events, excess = redis.call('LRANGE', list, 0, -1), {${boundedTypes.map(() => -maxKept).join(', ')}}
    for _, event in ipairs(events) do
      local of = bounded[string.match(event, '^%a+')]
      if of then excess[of] = excess[of] + 1 end
    end
    redis.call('DEL', list)
    for _, event in ipairs(events) do
      local of = bounded[string.match(event, '^%a+')]
      if of and excess[of] > 0 then excess[of] = excess[of] - 1 else redis.call('RPUSH', list, event) end
    end
  end
end
`;

/**
 * All swaps of a batch in one bucket. The ledger's state is checked once. Three parts follow; no record is in both of the
 * first two:
 * - New records (ordinary claims): written by one MSETNX if none exists, otherwise one by one.
 * - Swapped records (ordinary settlements): one MGET, compared by their heads, one MSET.
 * - Writes with events, other records to compare, a narrow time window or a slot to be filed in: one by one.
 *
 * `seq` is raised before the first write, so that a write is counted even if the script fails halfway.
 * KEYS: slots, meta, namespaces; due lists of the new; the new; the swapped; of each other: record, its due list (or the
 * record again), events, others beside.
 * ARGV: id, seen, writer, whether to check for evictions; where names start; earliest and latest instant of
 * the first two parts, lowest fence of the new; counts of namespaces, due lists, new, swapped; the namespaces; of each due
 * list: slot, count of its records, where their names begin to differ; of each new: row; of each swapped: old head, row; of
 * each other: old head, at, until, fence, slot (empty: none), row (empty: none), count of events, those events, count of
 * others beside, their heads.
 * Returns now, floor, seq; then for each write that was not done its number and the record found, or 0.
 */
export const swap: Script =
  script(`${filing}${history}${head}${clock}${sentinel}${noEviction}if ARGV[4] == '1' and hasEvicted() then
  redis.call('HSET', KEYS[2], 'lost', ARGV[1])
  return redis.error_reply('SEMELFORGOT')
end
local from, floor, answers, isCounted = tonumber(ARGV[5]), tonumber(meta[3]), {now, meta[3], meta[2]}, false
local namespaces, lists, new, swapped = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local isInTime = now >= tonumber(ARGV[6]) and now < tonumber(ARGV[7])
local function count()
  if isCounted then return end
  isCounted = true
  answers[3] = redis.call('HINCRBY', KEYS[2], 'seq', 1)
  if namespaces > 0 then redis.call('SADD', KEYS[3], unpack(ARGV, 13, 12 + namespaces)) end
end
local function answer(number, found)
  answers[#answers + 1] = number
  answers[#answers + 1] = found or 0
end
local k, a, groups = 3 + lists, 12 + namespaces, 13 + namespaces
a = a + 3 * lists
if new > 0 then
  local done, all = {}, {}
  local may = isInTime and tonumber(ARGV[8]) > floor
  for i = 1, new do
    all[2 * i - 1] = KEYS[k + i]
    all[2 * i] = ARGV[a + i]
  end
  local isAllNew = may and redis.call('MSETNX', unpack(all)) == 1
  if isAllNew then count() end
  for i = 1, isAllNew and 0 or new do
    local record, row = KEYS[k + i], ARGV[a + i]
    local found = redis.call('GET', record)
    if may and not found then
      count()
      redis.call('SET', record, row)
      done[i] = true
    elseif head(found) ~= head(row) then
      answer(i, found)
    end
  end
  local n = 0
  for g = 1, lists do
    local records, last = {}, n + tonumber(ARGV[groups + 1])
    for i = n + 1, last do
      if isAllNew or done[i] then records[#records + 1] = KEYS[k + i] end
    end
    if #records > 0 then file(KEYS[1], KEYS[3 + g], ARGV[groups], records, from, tonumber(ARGV[groups + 2])) end
    n, groups = last, groups + 3
  end
  k, a = k + new, a + new
end
if swapped > 0 then
  local found, all = redis.call('MGET', unpack(KEYS, k + 1, k + swapped)), {}
  for i = 1, swapped do
    local value, old, row = found[i], ARGV[a + 1], ARGV[a + 2]
    if isInTime and value and string.sub(value, 1, #old) == old then
      all[#all + 1] = KEYS[k + i]
      all[#all + 1] = row
    elseif head(value) ~= head(row) then
      answer(new + i, value)
    end
    a = a + 2
  end
  if #all > 0 then
    count()
    redis.call('MSET', unpack(all))
  end
  k = k + swapped
end
local number = new + swapped
while k < #KEYS do
  number = number + 1
  local record, due, list = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local slot, row, events = ARGV[a + 5], ARGV[a + 6], tonumber(ARGV[a + 7])
  local found = redis.call('GET', record)
  local may = head(found) == ARGV[a + 1] and now >= tonumber(ARGV[a + 2]) and now < tonumber(ARGV[a + 3])
    and (found or row == '' or tonumber(ARGV[a + 4]) > floor)
  local first = a + 7
  k, a = k + 3, first + events + 1
  local beside = tonumber(ARGV[a])
  for i = 1, beside do may = may and head(redis.call('GET', KEYS[k + i])) == ARGV[a + i] end
  k, a = k + beside, a + beside
  local isDone = row ~= '' and head(found) == head(row)
  if may and not isDone then
    count()
    if slot ~= '' then file(KEYS[1], due, slot, {record}, from, from) end
    if row ~= '' then redis.call('SET', record, row) end
    for i = 1, events do add(list, ARGV[first + i]) end
  elseif not isDone then
    answer(number, found)
  end
end
dropOld()
return answers`);

/**
 * KEYS: record, meta, events. ARGV: id, seen, writer, old head, fence, row (empty: delete the record), then the types of
 * events to delete.
 */
export const remove: Script = script(`${head}${sentinel}
if head(redis.call('GET', KEYS[1])) ~= ARGV[4] then return {0, meta[2]} end
if ARGV[6] == '' then
  redis.call('DEL', KEYS[1], KEYS[3])
  if tonumber(ARGV[5]) > tonumber(meta[3]) then redis.call('HSET', KEYS[2], 'floor', ARGV[5]) end
else
  redis.call('SET', KEYS[1], ARGV[6])
  local gone, kept = {}, {}
  for i = 7, #ARGV do gone[ARGV[i]] = true end
  for _, event in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if not gone[string.match(event, '^[^\\n]*')] then kept[#kept + 1] = event end
  end
  redis.call('DEL', KEYS[3])
  for _, event in ipairs(kept) do redis.call('RPUSH', KEYS[3], event) end
end
return {1, redis.call('HINCRBY', KEYS[2], 'seq', 1)}`);

/**
 * Drops an entry none of whose records can go now, and files those that can go later, unless another process was faster.
 * KEYS: slots, due list, later due lists. ARGV: slot, entry; of each later: slot, entry.
 */
export const refile: Script = script(`local isHere = redis.call('LREM', KEYS[2], 1, ARGV[2]) == 1
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('ZREM', KEYS[1], ARGV[1]) end
if not isHere then return 0 end
for i = 3, #KEYS do
  redis.call('RPUSH', KEYS[i], ARGV[2 * i - 2])
  redis.call('ZADD', KEYS[1], ARGV[2 * i - 3], ARGV[2 * i - 3])
end
return 1`);

/**
 * KEYS: slots, meta; for each event its record and its list of events. ARGV: id, seen, writer; for each event its type, and
 * what follows its instant.
 */
export const append: Script = script(`${clock}${sentinel}${history}
local at = '\\n' .. string.format('%.0f', now) .. '\\n'
for i = 3, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[i]) == 1 then add(KEYS[i + 1], ARGV[i + 1] .. at .. ARGV[i + 2]) end
end
dropOld()
return 1`);

export const descriptionFields = [
  'id',
  'seq',
  'lost',
  'writer',
  'buckets',
  'floor',
  'closed',
  'from',
  'turn',
  'accepted',
  'acceptedBy',
  'acceptedWhy',
] as const;

/**
 * Creates a bucket's `meta`, or reads it. A bucket with records but without `meta` is marked as lost.
 * KEYS: slots, meta, namespaces. ARGV: id, count of buckets, version, `new` to create it, `look` to change nothing.
 * Returns the fields of `meta`, and last its key as the server received it.
 */
export const begin: Script = script(`${clock}${readInfo}
if ARGV[4] ~= 'look' and redis.call('HEXISTS', KEYS[2], 'id') == 0 and redis.call('HEXISTS', KEYS[2], 'lost') == 0 then
  if ARGV[4] == 'new' and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
    redis.call('HSET', KEYS[2], 'id', ARGV[1], 'seq', 0, 'floor', string.format('%.0f', now * 1000),
      'buckets', ARGV[2], 'writer', ARGV[3])
    redis.call('HSET', KEYS[2], 'evicted', evicted(), 'start', start())
  else
    redis.call('HSET', KEYS[2], 'lost', 'unknown')
  end
end
local found = redis.call('HMGET', KEYS[2], ${descriptionFields.map((field) => `'${field}'`).join(', ')})
found[#found + 1] = KEYS[2]
return found`);

/** Closes the bucket until a person accepts the loss. KEYS: slots, meta. */
export const close: Script = script("redis.call('HSET', KEYS[2], 'lost', 'unknown') return 1");

/** KEYS: record. ARGV: old head, row. */
export const lift: Script = script(`${head}
if head(redis.call('GET', KEYS[1])) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`);

/**
 * Reopens a bucket under a new id, after a person accepted the loss. KEYS: slots, meta. ARGV: id, count of buckets, version,
 * who, why.
 */
export const accept: Script = script(`${counts}${clock}${readInfo}
redis.call('HSET', KEYS[2], 'evicted', evicted(), 'start', start())
local least = now * 1000
local floor = redis.call('HGET', KEYS[2], 'floor')
if isCount(floor) and tonumber(floor) > least then least = tonumber(floor) end
redis.call('HDEL', KEYS[2], 'lost')
redis.call('HSET', KEYS[2], 'id', ARGV[1], 'seq', 0, 'floor', string.format('%.0f', least), 'buckets', ARGV[2],
  'writer', ARGV[3], 'accepted', string.format('%.0f', now), 'acceptedBy', ARGV[4], 'acceptedWhy', ARGV[5])
return 1`);

/**
 * Changes the ledger's state if nobody else has. KEYS: slots, meta. ARGV: id, seen, writer, count of changes, closed, from,
 * the seq that it must still have (empty: any). Returns 1 if done, otherwise 0; and seq.
 */
export const stand: Script = script(`${sameLedger}
if (redis.call('HGET', KEYS[2], 'turn') or '0') ~= ARGV[4] then return {0, meta[2]} end
if ARGV[7] ~= '' and ARGV[7] ~= meta[2] then return {0, meta[2]} end
redis.call('HDEL', KEYS[2], 'closed', 'from')
if ARGV[5] ~= '' then redis.call('HSET', KEYS[2], 'closed', ARGV[5]) end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[2], 'from', ARGV[6]) end
redis.call('HINCRBY', KEYS[2], 'turn', 1)
return {1, redis.call('HINCRBY', KEYS[2], 'seq', 1)}`);

/** Reads records with their events. KEYS: of each: record, events. Returns now; of each: record, events. */
export const read: Script = script(`${clock}
local answers = {now}
for i = 1, #KEYS, 2 do
  answers[i + 1] = redis.call('GET', KEYS[i])
  answers[i + 2] = redis.call('LRANGE', KEYS[i + 1], 0, -1)
end
return answers`);

export const gone = '!';

/** KEYS: records. Returns the status digits of all, as one text. */
export const statuses: Script = script(`local found = {}
for i, record in ipairs(KEYS) do
  found[i] = redis.call('GETRANGE', record, ${statusAt}, ${statusAt})
  if found[i] == '' then found[i] = '${gone}' end
end
return table.concat(found)`);

/**
 * Copies records from another ledger, and removes those that it no longer has; their names stay in the due lists, where
 * pruning skips them. Only while the ledger is being filled.
 * KEYS: slots, meta, namespaces; of each that comes: record, due list (or the record again), events; of each that goes:
 * record, events.
 * ARGV: id, seen, writer, from, floor, where names start, count of those that come; of each: slot (empty: none), namespace,
 * row, count of events, those events.
 */
export const refill: Script = script(`${filing}${sameLedger}
if meta[5] ~= 'FILLING' or redis.call('HGET', KEYS[2], 'from') ~= ARGV[4] then
  return redis.error_reply('SEMELNOTFILLING')
end
if tonumber(ARGV[5]) > tonumber(meta[3]) then redis.call('HSET', KEYS[2], 'floor', ARGV[5]) end
local from, k, a = tonumber(ARGV[6]), 3, 7
for n = 1, tonumber(ARGV[7]) do
  local record, list, slot, events = KEYS[k + 1], KEYS[k + 3], ARGV[a + 1], tonumber(ARGV[a + 4])
  if slot ~= '' then file(KEYS[1], KEYS[k + 2], slot, {record}, from, from) end
  redis.call('SADD', KEYS[3], ARGV[a + 2])
  redis.call('SET', record, ARGV[a + 3])
  redis.call('DEL', list)
  for i = 1, events do redis.call('RPUSH', list, ARGV[a + 4 + i]) end
  k, a = k + 3, a + 4 + events
end
for i = k + 1, #KEYS do redis.call('DEL', KEYS[i]) end
return redis.call('HINCRBY', KEYS[2], 'seq', 1)`);

export const scripts: readonly Script[] = [
  look,
  swap,
  remove,
  refile,
  append,
  begin,
  close,
  lift,
  accept,
  stand,
  read,
  statuses,
  refill,
];

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}
