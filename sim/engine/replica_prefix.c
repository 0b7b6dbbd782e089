#include "sim/engine/replica_prefix.h"

#include "sim/base/check.h"
#include "sim/engine/prefix_chain.h"
#include "sim/engine/replica.h"

static struct sequence *at(const struct replica *r, uint32_t index)
{
    return sequence_at(r->engine->sequences, index);
}

/* Tokens stored by the iterations that have been accounted. */
static uint32_t stored_of(const struct replica *r, const struct sequence *s)
{
    uint64_t since = s->phase == SEQUENCE_DECODE ? r->iteration - s->start_iteration : 0;
    return s->stored + (uint32_t)since;
}

/* Tokens of a sequence in the iteration being formed, or in flight. */
static uint32_t share_of(const struct replica *r, uint32_t index, const struct sequence *s)
{
    if (s->phase == SEQUENCE_DECODE) {
        return 1;
    }
    return index == r->run.tail ? r->last_chunk : s->target - s->stored;
}

/* Publishes what `tokens` more fill. */
static void advance(struct replica *r, uint32_t index, uint32_t tokens)
{
    struct sequence *s = at(r, index);
    if (!s->hold.open) {
        return;
    }
    uint32_t blocks = (stored_of(r, s) + tokens) / r->engine->block_size;
    if (s->hold.blocks < blocks) {
        prefix_cache_advance(r->prefix, &s->hold, index, &s->record.request, blocks);
    }
}

void replica_prefix_turn(struct replica *r, uint32_t index, uint32_t tokens)
{
    const struct sequence *s = at(r, index);
    if (prefix_cache_watched(r->prefix, &s->hold)) {
        prefix_cache_settle(r->prefix, kv_available(&r->kv));
        advance(r, index, tokens);
        r->prefix->watch |= prefix_cache_watched(r->prefix, &s->hold);
    }
}

/* Looks a request up, with what the batch has published so far. */
static void look(struct replica *r, const struct request *request, uint32_t limit, bool referenced,
                 struct prefix_match *match)
{
    prefix_cache_look(r->prefix, request, limit, referenced, match);
    while (match->publisher != SEQUENCE_NONE) {
        uint32_t before = match->blocks;
        uint32_t index = match->publisher;
        advance(r, index, share_of(r, index, at(r, index)));
        prefix_cache_look(r->prefix, request, limit, referenced, match);
        if (match->blocks == before) {
            break;
        }
    }
}

bool replica_prefix_fits(struct replica *r, uint32_t index, uint32_t budget,
                         struct prefix_match *match)
{
    const struct sequence *s = at(r, index);
    const struct request *request = &s->record.request;
    uint32_t block_size = r->engine->block_size;
    uint32_t limit = (s->target - 1) / block_size; /* one token at least is computed */
    int64_t blocks = kv_blocks(&r->kv, s->target), available = kv_available(&r->kv);
    prefix_cache_settle(r->prefix, available);
    if (blocks > available) {
        /* Found blocks that are free cost what they save: only the others help. */
        look(r, request, limit, true, match);
        if (blocks - match->blocks > available) {
            r->head_may_grow = match->may_grow;
            return false;
        }
    }
    look(r, request, limit, false, match);
    if (!r->engine->chunked_prefill && s->target - match->blocks * block_size > budget) {
        r->head_may_grow = match->may_grow;
        return false;
    }
    return true;
}

static void observe(const struct replica *r, const struct sequence *s, uint32_t cached, int64_t t)
{
    struct obs_prefix prefix = {.record = &s->record,
                                .first = s->record.preemptions == 0,
                                .hit_tokens = s->stored,
                                .lookup_tokens = s->target,
                                .block_size = r->engine->block_size,
                                .cached_tokens = cached};
    struct obs obs = {.kind = OBS_PREFIX,
                      .pool = r->engine->pool,
                      .replica = r->launch,
                      .time_ps = t,
                      .u.prefix = &prefix};
    engine_emit(r->engine, &obs);
}

void replica_prefix_admit(struct replica *r, uint32_t index, const struct prefix_match *match,
                          uint32_t chunk, int64_t t)
{
    struct sequence *s = at(r, index);
    uint32_t prompt = s->record.request.prompt_tokens;
    s->stored = match->blocks * r->engine->block_size;
    uint32_t known = s->stored < prompt ? s->stored : prompt;
    uint32_t cached = known > s->high ? known - s->high : 0;
    s->record.cached_tokens += cached;
    s->high = s->stored > s->high ? s->stored : s->high;
    int64_t taken = prefix_cache_take(r->prefix, &s->hold, index, &s->record.request, match);
    kv_take(&r->kv, taken + kv_blocks(&r->kv, (int64_t)s->stored + chunk) - match->blocks);
    prefix_cache_settle(r->prefix, kv_available(&r->kv));
    uint32_t rival = prefix_cache_rival(r->prefix, &s->hold, index);
    if (rival != SEQUENCE_NONE) {
        advance(r, rival, share_of(r, rival, at(r, rival)));
    }
    advance(r, index, chunk);
    observe(r, s, cached, t);
}

int64_t replica_prefix_leave(struct replica *r, uint32_t index, int64_t total, uint32_t in_flight,
                             bool ended)
{
    struct sequence *s = at(r, index);
    prefix_cache_settle(r->prefix, kv_available(&r->kv));
    advance(r, index, in_flight);
    uint32_t keep = (s->stored + in_flight) / r->engine->block_size;
    if (s->stored >= s->target) { /* else what it found may still be in the making */
        prefix_cache_know(r->prefix, &s->hold, s->stored / r->engine->block_size);
    }
    return prefix_cache_release(r->prefix, &s->hold, index, total, keep, ended);
}

void replica_prefix_first_token(struct replica *r, uint32_t index)
{
    if (r->prefix->listened) {
        const struct sequence *s = at(r, index);
        advance(r, index, 0);
        prefix_cache_know(r->prefix, &s->hold, s->stored / r->engine->block_size);
    }
}

void replica_prefix_report(struct replica *r)
{
    if (!r->prefix->listened) {
        return;
    }
    prefix_cache_settle(r->prefix, kv_available(&r->kv));
    prefix_cache_report(r->prefix, r->engine->listener, r->slot);
}

uint32_t replica_cached_blocks(const struct replica *r)
{
    if (r->prefix == NULL) {
        return 0;
    }
    int64_t blocks = prefix_cache_common(r->prefix, kv_available(&r->kv));
    for (uint32_t index = r->run.head; index != SEQUENCE_NONE;) {
        const struct sequence *s = at(r, index);
        uint32_t full =
            (stored_of(r, s) + (r->running ? share_of(r, index, s) : 0)) / r->engine->block_size;
        uint32_t common = prefix_chain_common(&s->record.request, r->engine->block_size);
        uint32_t end = full < common ? full : common;
        if (s->hold.open && end > s->hold.blocks) {
            blocks += end - s->hold.blocks;
        }
        index = s->next;
    }
    return blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX;
}
