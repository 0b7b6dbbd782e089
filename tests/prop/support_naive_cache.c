#include "tests/prop/support_naive_cache.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

int64_t naive_blocks(int64_t tokens, int64_t block_size)
{
    return (tokens + block_size - 1) / block_size;
}

/* ---- contents ---- */

static const struct naive_content *content_find(struct naive_contents *contents,
                                                struct naive_content_key key)
{
    struct naive_content *content;
    HASH_FIND(hh, contents->all, &key, sizeof(key), content);
    if (!content) {
        content = memory_zero(1, sizeof(*content));
        content->key = key;
        HASH_ADD(hh, contents->all, key, sizeof(key), content);
    }
    return content;
}

const struct naive_content *naive_content_of(struct naive_contents *contents,
                                             const struct request *request, int64_t block_size,
                                             int64_t index, const struct naive_content *before)
{
    const struct token_hashes *hashes = request->hashes;
    int64_t from = index * block_size;
    int64_t to = from + block_size;
    struct naive_content_key key = {.before = before};
    if (to <= request->shared_tokens) {
        key.kind = NAIVE_SHARED;
        key.of = request->shared_prompt;
    } else if (hashes && to <= (int64_t)hashes->count * hashes->block_tokens) {
        key.kind = NAIVE_HASHED;
        key.of = hashes->ids[from / hashes->block_tokens];
        key.place = (uint64_t)(from % hashes->block_tokens);
    } else if (!hashes && request->stream != 0) {
        key.kind = NAIVE_STREAM;
        key.of = request->stream;
        key.place = request->shared_tokens > 0 ? request->shared_prompt : 0;
        key.position = request->shared_tokens;
    } else {
        key.kind = NAIVE_OWN;
        key.of = request->id;
    }
    return content_find(contents, key);
}

void naive_contents_free(struct naive_contents *contents)
{
    struct naive_content *content;
    struct naive_content *next;
    HASH_ITER(hh, contents->all, content, next)
    {
        HASH_DEL(contents->all, content);
        free(content);
    }
}

/* ---- blocks ---- */

void naive_cache_init(struct naive_cache *cache, const struct naive_engine *engine,
                      struct naive_contents *contents, struct naive_story *story)
{
    *cache = (struct naive_cache){.engine = engine,
                                  .contents = contents,
                                  .story = story,
                                  .never_used = engine->num_gpu_blocks};
    TAILQ_INIT(&cache->free);
}

void naive_cache_free(struct naive_cache *cache)
{
    HASH_CLEAR(hh, cache->published);
    while (cache->all) {
        struct naive_block *block = cache->all;
        cache->all = block->next;
        free(block);
    }
}

int64_t naive_cache_spare(const struct naive_cache *cache)
{
    return cache->engine->num_gpu_blocks - cache->referenced;
}

bool naive_cache_goes_on(const struct naive_cache *cache, const struct naive_content *content)
{
    for (const struct naive_block *block = cache->published; block; block = block->hh.next) {
        if (block->content->key.before == content) {
            return true;
        }
    }
    return false;
}

static struct naive_block *cache_find(const struct naive_cache *cache,
                                      const struct naive_content *content)
{
    struct naive_block *block;
    HASH_FIND_PTR(cache->published, &content, block);
    return block;
}

static void unpublish(struct naive_cache *cache, struct naive_block *block)
{
    HASH_DEL(cache->published, block);
    block->content = NULL;
}

/* One more holder; a free block leaves the queue. */
static void reference(struct naive_cache *cache, struct naive_block *block)
{
    if (block->references == 0) {
        TAILQ_REMOVE(&cache->free, block, link);
        cache->referenced++;
    }
    block->references++;
}

/* One holder fewer; without any it goes to the end of the queue, content and all. */
static void dereference(struct naive_cache *cache, struct naive_block *block)
{
    check(block->references > 0);
    block->references--;
    if (block->references == 0) {
        TAILQ_INSERT_TAIL(&cache->free, block, link);
        cache->referenced--;
    }
}

/* The first of the queue, for new tokens: held once, and its content is lost. */
static struct naive_block *take(struct naive_cache *cache)
{
    struct naive_block *block;
    check(naive_cache_spare(cache) > 0);
    if (cache->never_used > 0) {
        cache->never_used--;
        block = memory_zero(1, sizeof(*block));
        block->next = cache->all;
        cache->all = block;
        block->references = 1;
        cache->referenced++;
        return block;
    }
    block = TAILQ_FIRST(&cache->free);
    if (block->content) {
        unpublish(cache, block);
        cache->story->evicted++;
    }
    reference(cache, block);
    return block;
}

/* ---- a sequence's blocks ---- */

void naive_holder_free(struct naive_holder *h)
{
    free(h->blocks);
    free(h->chain);
}

/* What its block `index` is. */
static const struct naive_content *content(struct naive_cache *cache, struct naive_holder *h,
                                           int64_t index)
{
    while (h->chain_count <= index) {
        int64_t next = h->chain_count;
        h->chain = memory_grow(h->chain, (size_t)(next + 1) * sizeof(*h->chain));
        h->chain[next] = naive_content_of(cache->contents, h->request, cache->engine->block_size,
                                          next, next > 0 ? h->chain[next - 1] : NULL);
        h->chain_count++;
    }
    return h->chain[index];
}

struct naive_block *naive_holder_find(struct naive_cache *cache, struct naive_holder *h,
                                      int64_t index)
{
    return cache_find(cache, content(cache, h, index));
}

int64_t naive_holder_hits(struct naive_cache *cache, struct naive_holder *h, int64_t most)
{
    int64_t hits = 0;
    while (hits < most && naive_holder_find(cache, h, hits)) {
        hits++;
    }
    return hits;
}

int64_t naive_holder_free_hits(struct naive_cache *cache, struct naive_holder *h, int64_t hits)
{
    int64_t spare = 0;
    for (int64_t i = 0; i < hits; i++) {
        spare += naive_holder_find(cache, h, i)->references == 0;
    }
    return spare;
}

static void append(struct naive_holder *h, struct naive_block *block)
{
    size_t count = (size_t)h->count + 1;
    h->blocks = memory_grow(h->blocks, count * sizeof(struct naive_block *));
    h->blocks[h->count++] = block;
}

/* What the hits look like before they are taken. */
static void tell_hits(struct naive_cache *cache, struct naive_holder *h, int64_t hits,
                      int64_t target, int64_t now_ps)
{
    struct naive_story *story = cache->story;
    int64_t size = cache->engine->block_size;
    bool capped = hits == (target - 1) / size;
    for (int64_t i = 0; i < hits; i++) {
        const struct naive_block *block = naive_holder_find(cache, h, i);
        bool own = block->publisher == h->request;
        story->hit_free += block->references == 0;
        story->hit_held += block->references > 0;
        story->hit_in_pass += block->published_ps == now_ps;
        story->hit_later += block->publisher->id > h->request->id;
        story->hit_own += own;
        story->hit_output += !own && (i + 1) * size > block->publisher->prompt_tokens;
        story->hit_kind[block->content->key.kind]++;
    }
    if (hits > 0) {
        const struct naive_block *last = naive_holder_find(cache, h, hits - 1);
        story->hit_part += !capped && naive_cache_goes_on(cache, last->content);
        story->hit_capped += capped && target % size == 0 && naive_holder_find(cache, h, hits);
    }
}

void naive_holder_hit(struct naive_cache *cache, struct naive_holder *h, int64_t hits,
                      int64_t target, int64_t now_ps)
{
    check(h->count == 0);
    tell_hits(cache, h, hits, target, now_ps);
    for (int64_t i = 0; i < hits; i++) {
        struct naive_block *block = naive_holder_find(cache, h, i);
        reference(cache, block);
        append(h, block);
    }
}

/* Block `index` is full now. It can be hit unless its content is cached already, or what stands
 * before it cannot be hit. */
static void publish(struct naive_cache *cache, struct naive_holder *h, int64_t index,
                    int64_t now_ps)
{
    struct naive_block *block = h->blocks[index];
    const struct naive_block *other = naive_holder_find(cache, h, index);
    check(!block->content);
    if (other) {
        cache->story->duplicates++;
        cache->story->overtaken += other->publisher->id > h->request->id;
    } else if (index > 0 && !h->blocks[index - 1]->content) {
        cache->story->behind_private++;
    } else {
        block->content = content(cache, h, index);
        block->publisher = h->request;
        block->published_ps = now_ps;
        HASH_ADD_PTR(cache->published, content, block);
    }
}

void naive_holder_store(struct naive_cache *cache, struct naive_holder *h, int64_t from, int64_t to,
                        int64_t now_ps)
{
    int64_t size = cache->engine->block_size;
    while (h->count < naive_blocks(to, size)) {
        append(h, take(cache));
    }
    if (cache->engine->enable_prefix_caching) {
        for (int64_t i = from / size; i < to / size; i++) {
            publish(cache, h, i, now_ps);
        }
    }
}

void naive_holder_take_back(struct naive_cache *cache, struct naive_holder *h, int64_t from,
                            int64_t to)
{
    int64_t size = cache->engine->block_size;
    for (int64_t i = from / size; i < to / size; i++) {
        if (h->blocks[i]->content) {
            unpublish(cache, h->blocks[i]);
            cache->story->unpublished++;
        }
    }
}

void naive_holder_release(struct naive_cache *cache, struct naive_holder *h)
{
    while (h->count > 0) {
        dereference(cache, h->blocks[--h->count]);
    }
}
