// What Redis does by itself, one step at a time: it compares and writes, and never decides. Every key of a script lies
// in one bucket and so, in a cluster, in one slot.

import { createHash } from 'node:crypto';

export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Newer programs that write what this one cannot read raise `writer` in the ledger's description. */
export const layoutVersion = 1;

const clock = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

// A ledger that is not the one the caller knows, or that is behind what the caller has seen, has forgotten. That it has
// is written down, for whoever comes new; but another ledger at this address is not ours to mark.
const sameLedger = `local meta = redis.call('HMGET', KEYS[2], 'id', 'seq', 'floor', 'lost', 'closed', 'writer')
local isOther = meta[1] and meta[1] ~= ARGV[1]
if meta[4] or not meta[1] or isOther or tonumber(meta[2]) < tonumber(ARGV[2]) then
  if not meta[4] and not isOther then redis.call('HSET', KEYS[2], 'lost', ARGV[1]) end
  return redis.error_reply('SEMELFORGOT')
end
`;

// Why a ledger is closed to its users is written as the word that they are answered with: whatever the reason, there is
// one field to look at.
const sentinel = `${sameLedger}if meta[5] then return redis.error_reply('SEMEL' .. meta[5]) end
if tonumber(ARGV[3]) < tonumber(meta[6]) then return redis.error_reply('SEMELOLD') end
`;

// A record that was evicted looks like one that never was. The server counts what it evicts, from 0 at each start: the
// count that the ledger knows, and of which start, lie in its description. A count that was reset starts anew.
const told = `local function told(section, pattern)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and string.match(info, pattern) or ''
end
local function evicted() return told('stats', 'evicted_keys:(%d+)') end
local function start() return told('server', 'run_id:(%w+)') end
`;
const noEviction = `${told}local function hasEvicted()
  local count, known = evicted(), redis.call('HMGET', KEYS[2], 'evicted', 'start')
  if count == known[1] then return false end
  local before = start() == known[2] and tonumber(known[1]) or 0
  if (tonumber(count) or 0) > before then return true end
  redis.call('HSET', KEYS[2], 'evicted', count, 'start', start())
  return false
end
`;

const parse = `local found = redis.call('GET', KEYS[1])
local revision, filed = '', ''
if found then revision, filed = string.match(found, '^([^\\n]*)\\n([^\\n]*)\\n') end
`;

// In a due list names are shortened by what they have in common with the list's first line, which holds a name after a
// byte that no entry starts with. Nothing is cut within a character, so that every driver can read it as text.
const filing = `local function entryOf(first, name)
  local n = 0
  while n < 126 and n < #name and string.byte(first, n + 2) == string.byte(name, n + 1) do n = n + 1 end
  while n > 0 and n < #name and string.byte(name, n + 1) >= 128 and string.byte(name, n + 1) < 192 do n = n - 1 end
  return string.char(n) .. string.sub(name, n + 1)
end
local firsts = {}
local function put(list, slots, slot, name)
  local first = firsts[list] or redis.call('LINDEX', list, 0)
  if not first then
    first = string.char(127) .. name
    redis.call('RPUSH', list, first)
    redis.call('ZADD', slots, tonumber(slot, 36), slot)
  end
  firsts[list] = first
  redis.call('RPUSH', list, entryOf(first, name))
end
local function drop(list, slots, slot, name)
  local first = redis.call('LINDEX', list, 0)
  if first then redis.call('LREM', list, 1, entryOf(first, name)) end
  if redis.call('LLEN', list) <= 1 then
    redis.call('DEL', list)
    redis.call('ZREM', slots, slot)
  end
end
`;

/** KEYS: record. */
export const look: Script = script(`${clock}return {now, redis.call('GET', KEYS[1])}`);

/**
 * Many swaps in one bucket, one after the other; what is read of the ledger itself is read once.
 * KEYS: slots, meta, namespaces; then of each record: record, due list, events, other records beside.
 * ARGV: id, seen, writer, start of names, whether to make sure that nothing was evicted; then of each: old, new, at, until, fence, due slot, namespace, row, count of
 * events, those events, count of others beside, their revisions. A name is filed for retention before its record is
 * written, and that something is written is counted before it is: what stands when a script breaks off is confirmed by
 * whoever asks again. Answers now, floor, seq; then of each: 1 where it is done, else what is there, or 0.
 */
export const swap: Script = script(`${filing}${noEviction}${clock}${sentinel}
if ARGV[5] == '1' and hasEvicted() then
  redis.call('HSET', KEYS[2], 'lost', ARGV[1])
  return redis.error_reply('SEMELFORGOT')
end
local floor, named, isCounted, answers = tonumber(meta[3]), {}, false, {now, meta[3], meta[2]}
local k, a = 3, 5
while k < #KEYS do
  local record, new, slot, row = KEYS[k + 1], ARGV[a + 2], ARGV[a + 6], ARGV[a + 8]
  local due, list, namespace = KEYS[k + 2], KEYS[k + 3], ARGV[a + 7]
  local events = tonumber(ARGV[a + 9])
  local found = redis.call('GET', record)
  local revision, filed = '', ''
  if found then revision, filed = string.match(found, '^([^\\n]*)\\n([^\\n]*)\\n') end
  local may = revision == ARGV[a + 1] and now >= tonumber(ARGV[a + 3]) and now < tonumber(ARGV[a + 4])
    and (found or row == '' or tonumber(ARGV[a + 5]) > floor)
  local first = a + 9
  k, a = k + 3, first + events + 1
  local beside = tonumber(ARGV[a])
  for i = 1, beside do
    local other = redis.call('GET', KEYS[k + i])
    may = may and (other and string.match(other, '^[^\\n]*') or '') == ARGV[a + i]
  end
  k, a = k + beside, a + beside
  local answer = found or 0
  if revision == new then
    answer = 1
  elseif may then
    if not isCounted then
      answers[3] = redis.call('HINCRBY', KEYS[2], 'seq', 1)
      isCounted = true
    end
    if row ~= '' then
      if slot ~= '' and (filed == '' or tonumber(slot, 36) < tonumber(filed, 36)) then
        put(due, KEYS[1], slot, string.sub(record, tonumber(ARGV[4])))
        filed = slot
      end
      if not found and not named[namespace] then
        redis.call('SADD', KEYS[3], namespace)
        named[namespace] = true
      end
      redis.call('SET', record, new .. '\\n' .. filed .. '\\n' .. row)
    end
    for i = 1, events do redis.call('RPUSH', list, ARGV[first + i]) end
    answer = 1
  end
  answers[#answers + 1] = answer
end
return answers`);

/**
 * KEYS: record, meta, slots, due list, events. ARGV: id, seen, writer, old, new, fence, slot, start of name, row (empty:
 * nothing stays), then the types of the events that go.
 */
export const remove: Script = script(`${filing}${sentinel}${parse}
if revision ~= ARGV[4] then return {0, meta[2]} end
if ARGV[9] == '' then
  redis.call('DEL', KEYS[1], KEYS[5])
  if tonumber(ARGV[6]) > tonumber(meta[3]) then redis.call('HSET', KEYS[2], 'floor', ARGV[6]) end
else
  redis.call('SET', KEYS[1], ARGV[5] .. '\\n\\n' .. ARGV[9])
  local gone, kept = {}, {}
  for i = 10, #ARGV do gone[ARGV[i]] = true end
  for _, event in ipairs(redis.call('LRANGE', KEYS[5], 0, -1)) do
    if not gone[string.match(event, '^[^\\n]*')] then kept[#kept + 1] = event end
  end
  redis.call('DEL', KEYS[5])
  for _, event in ipairs(kept) do redis.call('RPUSH', KEYS[5], event) end
end
drop(KEYS[4], KEYS[3], ARGV[7], string.sub(KEYS[1], tonumber(ARGV[8])))
return {1, redis.call('HINCRBY', KEYS[2], 'seq', 1)}`);

/**
 * Retention looked at a name and its record cannot go yet, or is gone. KEYS: record, due list, later due list, slots.
 * ARGV: revision, slot, later slot (empty: none), start of name.
 */
export const file: Script = script(`${filing}${parse}
local name = string.sub(KEYS[1], tonumber(ARGV[4]))
if found and filed == ARGV[2] then
  if revision ~= ARGV[1] then return 0 end
  if ARGV[3] ~= '' then put(KEYS[3], KEYS[4], ARGV[3], name) end
  redis.call('SET', KEYS[1], revision .. '\\n' .. ARGV[3] .. string.sub(found, #revision + #filed + 2))
end
drop(KEYS[2], KEYS[4], ARGV[2], name)
return 1`);

/** KEYS: record, meta, events. ARGV: id, seen, writer; for each event its type, and the rest after its instant. */
export const append: Script = script(`${clock}${sentinel}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for i = 4, #ARGV, 2 do
  redis.call('RPUSH', KEYS[3], ARGV[i] .. '\\n' .. string.format('%.0f', now) .. '\\n' .. ARGV[i + 1])
end
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
 * A bucket of a new ledger, or what is there. What has records and no description has lost it.
 * KEYS: slots, meta, namespaces. ARGV: id, count of buckets, version, `new` where no other bucket speaks against it, `look` to change nothing.
 * Answers its description, and last the key of the description as it has reached the server.
 */
export const begin: Script = script(`${clock}${told}
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

/** Nobody writes until a person has accepted what is lost. KEYS: slots, meta. */
export const close: Script = script("redis.call('HSET', KEYS[2], 'lost', 'unknown') return 1");

/** KEYS: record. ARGV: old, new, what follows the revision. */
export const lift: Script = script(`${parse}
if revision ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. '\\n' .. filed .. '\\n' .. ARGV[3])
return 1`);

/**
 * A person accepts what is lost: the bucket goes on as another. KEYS: slots, meta. ARGV: id, count of buckets, version, who,
 * why.
 */
export const accept: Script = script(`${clock}${told}
redis.call('HSET', KEYS[2], 'evicted', evicted(), 'start', start())
local least = now * 1000
local floor = redis.call('HGET', KEYS[2], 'floor')
if floor and tonumber(floor) > least then least = tonumber(floor) end
redis.call('HDEL', KEYS[2], 'lost')
redis.call('HSET', KEYS[2], 'id', ARGV[1], 'seq', 0, 'floor', string.format('%.0f', least), 'buckets', ARGV[2],
  'writer', ARGV[3], 'accepted', string.format('%.0f', now), 'acceptedBy', ARGV[4], 'acceptedWhy', ARGV[5])
return 1`);

/**
 * Another standing, if the bucket has not heard of this change or a later one. KEYS: slots, meta. ARGV: id, seen, writer,
 * turn, closed, from, the count of writes that it must still have (empty: any). Answers 1 where it is done, 0 where it was
 * late, -1 where somebody wrote meanwhile; and seq.
 */
export const stand: Script = script(`${sameLedger}
if tonumber(redis.call('HGET', KEYS[2], 'turn') or 0) >= tonumber(ARGV[4]) then return {0, meta[2]} end
if ARGV[7] ~= '' and ARGV[7] ~= meta[2] then return {-1, meta[2]} end
redis.call('HDEL', KEYS[2], 'closed', 'from')
if ARGV[5] ~= '' then redis.call('HSET', KEYS[2], 'closed', ARGV[5]) end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[2], 'from', ARGV[6]) end
redis.call('HSET', KEYS[2], 'turn', ARGV[4])
return {1, redis.call('HINCRBY', KEYS[2], 'seq', 1)}`);

/** As they lie there, each with its history. KEYS: of each: record, events. Answers now; of each: record, events. */
export const read: Script = script(`${clock}
local answers = {now}
for i = 1, #KEYS, 2 do
  answers[i + 1] = redis.call('GET', KEYS[i])
  answers[i + 2] = redis.call('LRANGE', KEYS[i + 1], 0, -1)
end
return answers`);

/** KEYS: records. Answers the code of each one's status, in a row; `-`: it is gone. */
export const statuses: Script = script(`local found = {}
for i, record in ipairs(KEYS) do
  found[i] = string.match(redis.call('GETRANGE', record, 0, 63), '^[^\\n]*\\n[^\\n]*\\n[^,]*,(%w)') or '-'
end
return table.concat(found)`);

/**
 * Records of another ledger replace what is here, by whoever fills it; what is gone there goes here, and retention finds
 * by itself that it is.
 * KEYS: slots, meta, namespaces; of each that comes: record, due list, events; of each that goes: record, events.
 * ARGV: id, seen, writer, from, floor, start of names, count of those that come; of each: revision, due slot, namespace,
 * row, count of events, those events.
 */
export const refill: Script = script(`${filing}${sameLedger}
if meta[5] ~= 'FILLING' or redis.call('HGET', KEYS[2], 'from') ~= ARGV[4] then
  return redis.error_reply('SEMELNOTFILLING')
end
if tonumber(ARGV[5]) > tonumber(meta[3]) then redis.call('HSET', KEYS[2], 'floor', ARGV[5]) end
local k, a = 3, 7
for n = 1, tonumber(ARGV[7]) do
  local record, list, slot, events = KEYS[k + 1], KEYS[k + 3], ARGV[a + 2], tonumber(ARGV[a + 5])
  local found = redis.call('GET', record)
  local filed = found and string.match(found, '^[^\\n]*\\n([^\\n]*)\\n') or ''
  if slot ~= '' and (filed == '' or tonumber(slot, 36) < tonumber(filed, 36)) then
    put(KEYS[k + 2], KEYS[1], slot, string.sub(record, tonumber(ARGV[6])))
    filed = slot
  end
  redis.call('SADD', KEYS[3], ARGV[a + 3])
  redis.call('SET', record, ARGV[a + 1] .. '\\n' .. filed .. '\\n' .. ARGV[a + 4])
  redis.call('DEL', list)
  for i = 1, events do redis.call('RPUSH', list, ARGV[a + 5 + i]) end
  k, a = k + 3, a + 5 + events
end
for i = k + 1, #KEYS do redis.call('DEL', KEYS[i]) end
return redis.call('HINCRBY', KEYS[2], 'seq', 1)`);

export const scripts: readonly Script[] = [
  look,
  swap,
  remove,
  file,
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
