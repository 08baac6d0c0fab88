-- One call of one tollgate node to one shard of the lease store.
--
-- It says what `quota::protocol::Store::call` says, in the same arithmetic and the same order; a
-- differential test runs both on the same calls. Amounts are micro-tokens (1 token = 1,000,000),
-- times are microseconds. Nothing here rests on the clock of a node.
--
-- KEYS  1 shard   hash   now, wall: the shard's own time and the last TIME that it saw
--                        n:<node>: when each node was last heard, in the shard's time
--       2 low     zset   key -> when it was noted low
--       3 lows    hash   key -> its level then, '<d'
--       4...      hash   one for each report:
--                        b: the bucket, BUCKET below
--                        n:<node>: what that node has spent, ROW below
-- ARGV  1 node           16 hexadecimal digits
--       2 elapsed        its own time since its last answered call, or '' if it has none
--       3 since          where its last digest ended: a time,
--       4 after          and the last key told of those noted at that very time, or ''
--       5 leave          '1' if the node goes
--       6 publish        PUBLISH, SPUBLISH or '' (tell nobody)
--       7 channel
--       8 reports        REPORT for each key, one after the other
-- Reply 1 live nodes
--       2, 3             since and after of the node's next call
--       4 leases         LEASE for each report; a share of -1: the key is not kept, for something
--                        that is no bucket stands under its name and is left alone
--       5 digest         LOW for each key noted low since the last digest, the longest ago first
-- Published: the node, then LOW for each key that this call spent of and left low.
--
-- To read a bucket with redis-cli: EVAL "return cjson.encode({struct.unpack('<ddddddd',
-- redis.call('HGET', KEYS[1], 'b'))})" 1 <key>

local REPORT, REPORT_BYTES = '<ddddddd', 56 -- rate, cap, boot, spent, charged, level, local (0 or 1)
local LEASE = '<ddd'                        -- level, charged, share
local BUCKET, BUCKET_BYTES = '<ddddddd', 56 -- level, at, rate of all, rate, cap, rows, sweep
local ROW, ROW_BYTES = '<dddd', 32          -- boot, spent, rate, at
-- LOW is the name of a key and its level, '<d'.
local NAME_BYTES = 49                       -- of a key, as it stands at the end of its KEYS and in low

local STEP_US = 500000         -- more than TIME goes on by itself from call to call
local AHEAD_US = 3600000000     -- a node is believed to know of a time that is so much later
local LIVE_US = 1500000        -- a node that was heard less long ago is live
local SILENT_US = 600000000    -- a node or row that was not heard for longer is forgotten
local DIGEST_AGE_US = 300000   -- how long a digest tells of a key
local DIGEST_MAX = 256         -- how many keys one digest tells of
local SHARE_TAU_S = 8          -- a spend counts 1/e in a node's share after so long
local LOW_WATER_SHARE, LOW_WATER_MIN = 0.25, 1500000
local ROWS_MAX = 32            -- so many rows, and silent ones are removed
local KEPT_MIN_MS, KEPT_MAX_MS = 10000, 1e13 -- of a key after its last report; Redis takes no more
local SHARD_KEPT_S = 3600      -- of the three keys of the shard
local ARGUMENTS_MAX = 2000     -- of one command, for Lua's stack has an end
local WHOLE_MAX = 2 ^ 53 - 2   -- up to which a number can still be told from the next one

local call, pcall = redis.call, redis.pcall
local pack, unpack_bytes = struct.pack, struct.unpack
local exp, floor, max, min = math.exp, math.floor, math.max, math.min

local shard, low, lows = KEYS[1], KEYS[2], KEYS[3]
local node = 'n:' .. ARGV[1]
local elapsed, since, after = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local leaves, publish, reports = ARGV[5] == '1', ARGV[6], ARGV[8]
if #reports ~= (#KEYS - 3) * REPORT_BYTES then
    return redis.error_reply('ERR as many reports as keys are needed')
end

-- Nothing is written before all three keys of the shard are known to be its own.
local function foreign(key, answer)
    if type(answer) == 'table' and answer.err then
        if string.find(answer.err, 'WRONGTYPE', 1, true) then
            return redis.error_reply('WRONGTYPE ' .. key .. ' is not of tollgate: rename or delete it')
        end
        return answer
    end
end
local fields = pcall('HGETALL', shard)
local lows_noted = pcall('ZCARD', low)
local fault = foreign(shard, fields) or foreign(low, lows_noted)
    or foreign(lows, pcall('HLEN', lows))
if fault then return fault end

local heard, clock, last_wall = {}, nil, nil
for i = 1, #fields, 2 do
    local field, value = fields[i], tonumber(fields[i + 1])
    if field == 'now' then clock = value
    elseif field == 'wall' then last_wall = value
    elseif string.sub(field, 1, 2) == 'n:' then heard[field] = value or 0
    end
end

-- The shard's time goes on by TIME. Where TIME was set, the time stands in that the node makes it: when
-- it was last answered, and what its own clock has gone on since. So two nodes that call around a step
-- do not both add their tick, and a replica that has lost what its master answered loses no time.
local time = redis.call('TIME')
local wall = time[1] * 1000000 + time[2]
local now = wall
if last_wall and clock and clock >= 0 and clock < 2 ^ 53 then
    local by = wall - last_wall
    if by >= 0 and by <= STEP_US then
        now = clock + by
    elseif elapsed then
        now = max(clock, min(since + elapsed, clock + AHEAD_US))
    else
        now = clock + max(by, 0)
    end
end
now = min(now, WHOLE_MAX)

-- Live nodes, and those that are forgotten.
heard[node] = nil
local nodes = leaves and 0 or 1
local gone = {}
for field, at in pairs(heard) do
    local silent = now - at
    if silent > SILENT_US then gone[#gone + 1] = field
    elseif silent < LIVE_US then nodes = nodes + 1
    end
end

local function kept_ms(rate, cap)
    return max(floor(3000 * cap / rate), KEPT_MIN_MS)
end

-- The bucket and the row of this node: found or nil, or false if what stands there is not ours.
local function find(key)
    local found = pcall('HMGET', key, 'b', node)
    if found.err then
        if string.find(found.err, 'WRONGTYPE', 1, true) then return false end
        error(found.err)
    end
    local bucket, row = found[1], found[2]
    if not bucket then
        -- A hash without a bucket is somebody else's.
        if row or call('EXISTS', key) == 1 then return false end
        return nil
    end
    if #bucket ~= BUCKET_BYTES or (row and #row ~= ROW_BYTES) then return false end
    return bucket, row
end

-- Removes the rows of nodes that are long silent, so that a key that outlives many restarts does not
-- keep a row for each of them. Says how many rows are left, this node's among them, and the time
-- until which none of them can be silent.
local function drop_silent_rows(key)
    local left, oldest, all = 1, now, call('HGETALL', key)
    for i = 1, #all, 2 do
        local field, value = all[i], all[i + 1]
        if field ~= 'b' and field ~= node then
            local at = #value == ROW_BYTES and select(4, unpack_bytes(ROW, value)) or now
            if now - at > SILENT_US then
                call('HDEL', key, field)
            else
                left, oldest = left + 1, min(oldest, at)
            end
        end
    end
    return left, oldest + SILENT_US
end

local leases, noted, noted_levels, news = {}, {}, {}, {}

local function charge(key, rate, cap, boot, spent, charged, level, is_local)
    local bucket, row = find(key)
    if bucket == false then return 0, 0, -1 end
    local bucket_level, at, rate_sum, rows, sweep = cap, now, 0, 0, 0
    if bucket then
        local old_rate, old_cap
        bucket_level, at, rate_sum, old_rate, old_cap, rows, sweep = unpack_bytes(BUCKET, bucket)
        if not (bucket_level >= -old_cap and bucket_level <= old_cap and old_rate > 0) then
            return 0, 0, -1
        end
        if now - at > kept_ms(old_rate, old_cap) * 1000 then
            -- Long full, or so long in debt that it is forgiven; Redis has only not removed it yet.
            call('DEL', key)
            bucket_level, at, rate_sum, rows, sweep, row = cap, now, 0, 0, 0, nil
        elseif at > now then
            -- The shard's time has begun anew, the bucket is of before.
            sweep = 0
        end
    end

    local known, own_rate, known_spent = false, 0, charged
    if row then
        local row_boot, row_spent, row_rate, row_at = unpack_bytes(ROW, row)
        -- A report of the cell before changes nothing.
        if row_boot > boot then return level, spent, 0 end
        -- What a node spends goes on when its cell is made again; its counter does not.
        own_rate = row_rate * exp(-max(now - row_at, 0) / (SHARE_TAU_S * 1e6))
        if row_boot == boot then known, known_spent = row_spent >= charged, max(row_spent, charged) end
    else
        rows = rows + 1
    end

    local seconds = max(now - at, 0) / 1e6
    bucket_level = min(cap, bucket_level + rate * seconds)
    rate_sum = rate_sum * exp(-seconds / SHARE_TAU_S)
    local new = max(spent - known_spent, 0)
    -- What a node spent while it answered itself is settled by its level.
    if not is_local then
        bucket_level = bucket_level - new
        own_rate = own_rate + new / SHARE_TAU_S
        rate_sum = rate_sum + new / SHARE_TAU_S
    end
    -- Of a node that the shard does not know, or of which it has forgotten what it had acknowledged (a
    -- replica that was behind its master), the level counts that it was told then.
    if not known or (is_local and new > 0) then
        bucket_level = min(bucket_level, level)
    end
    -- Debt beyond one burst is forgiven.
    bucket_level = max(bucket_level, -cap)
    known_spent = max(known_spent, spent)

    if rows >= ROWS_MAX and now > sweep then rows, sweep = drop_silent_rows(key) end
    call('HSET', key, 'b', pack(BUCKET, bucket_level, now, rate_sum, rate, cap, rows, sweep),
        node, pack(ROW, boot, known_spent, own_rate, now))
    call('PEXPIRE', key, min(kept_ms(rate, cap), KEPT_MAX_MS))

    local whole = floor(bucket_level)
    if bucket_level < max(cap * LOW_WATER_SHARE, LOW_WATER_MIN) then
        local name, told = string.sub(key, -NAME_BYTES), pack('<d', whole)
        noted[#noted + 1], noted[#noted + 2] = now, name
        noted_levels[#noted_levels + 1], noted_levels[#noted_levels + 2] = name, told
        if new > 0 then news[#news + 1], news[#news + 2] = name, told end
    end
    return whole, known_spent, rate_sum > 0 and min(own_rate / rate_sum, 1) or 0
end

for i = 4, #KEYS do
    local rate, cap, boot, spent, charged, level, is_local =
        unpack_bytes(REPORT, reports, (i - 4) * REPORT_BYTES + 1)
    -- What no cell can have sent changes nothing, and leaves its cell as it was.
    local is_sound = rate > 0 and rate < math.huge and cap > 0 and spent >= 0 and charged >= 0
        and boot < 2 ^ 53
    if is_sound then
        leases[i - 3] = pack(LEASE, charge(KEYS[i], rate, cap, boot, spent, charged, level,
            is_local == 1))
    else
        leases[i - 3] = pack(LEASE, level, spent, 0)
    end
end

local function in_parts(command, key, list)
    for from = 1, #list, ARGUMENTS_MAX do
        call(command, key, unpack(list, from, min(from + ARGUMENTS_MAX - 1, #list)))
    end
end
if #noted > 0 then
    in_parts('ZADD', low, noted)
    in_parts('HSET', lows, noted_levels)
    call('EXPIRE', low, SHARD_KEPT_S)
    call('EXPIRE', lows, SHARD_KEPT_S)
end

-- The page of keys noted since the node's last digest. A page that is not full told all there is.
local digest, next_since, next_after, next_now = {}, now, '', now
if lows_noted > 0 or #noted > 0 then
    local oldest = now - DIGEST_AGE_US
    -- A place that lies ahead is of an earlier life of the store, and says nothing of this one.
    if since > now then since, after = 0, '' end
    local names
    if after ~= '' and since >= oldest then
        -- Keys of one time stand in the order of their names: look where those after the last begin.
        local first = call('ZCOUNT', low, '-inf', '(' .. ARGV[3])
        local last = call('ZCOUNT', low, '-inf', ARGV[3])
        while first < last do
            local middle = floor((first + last) / 2)
            if call('ZRANGE', low, middle, middle)[1] <= after then first = middle + 1
            else last = middle
            end
        end
        names = call('ZRANGE', low, first, first + DIGEST_MAX - 1)
    else
        names = call('ZRANGEBYSCORE', low, max(since, oldest), '+inf', 'LIMIT', 0, DIGEST_MAX)
    end
    if #names > 0 then
        local levels = call('HMGET', lows, unpack(names))
        for i, name in ipairs(names) do
            local level = levels[i]
            if #name == NAME_BYTES and level and #level == 8 then
                digest[#digest + 1], digest[#digest + 2] = name, level
            end
        end
    end
    if #names == DIGEST_MAX then
        next_after = names[DIGEST_MAX]
        -- A time to come is of an earlier life of the store, or of somebody else.
        next_since = min(tonumber(call('ZSCORE', low, next_after)), now)
        -- What is noted at this very time from here on could fall among those already told.
        if next_since == now then next_now = now + 1 end
    end
    local old = call('ZRANGEBYSCORE', low, '-inf', '(' .. string.format('%.0f', oldest),
        'LIMIT', 0, max(DIGEST_MAX, #KEYS - 3))
    if #old > 0 then
        in_parts('ZREM', low, old)
        in_parts('HDEL', lows, old)
    end
end

if leaves then
    call('HDEL', shard, node)
    call('HSET', shard, 'now', next_now, 'wall', wall)
else
    call('HSET', shard, 'now', next_now, 'wall', wall, node, now)
end
in_parts('HDEL', shard, gone)
call('EXPIRE', shard, SHARD_KEPT_S)
if publish ~= '' and #news > 0 then
    call(publish, ARGV[7], ARGV[1] .. table.concat(news))
end
return { nodes, next_since, next_after, table.concat(leases), table.concat(digest) }
