/* The prefix cache of the naive engine, as its rules read: one object per physical block, with a
 * count of those who hold it, its content and its place in the queue of free blocks; one map from
 * contents to blocks. No runs, no lists of lists.
 *
 * A content is what a full block's tokens are, together with all tokens before them: two blocks of
 * equal content hold equal keys and values.
 *
 * Where the rules leave a choice open, this file's choice is:
 * - a stream's tokens behind a shared prompt are another stream's when the prompt, or how much of
 *   it is shared, differs; that begins with the block that straddles the shared prompt's end;
 * - what stands behind the last hash is the request's own, also when it names a stream;
 * - shared_prompt says nothing while shared_tokens is 0.
 */
#ifndef FLEETSIM_TESTS_PROP_SUPPORT_NAIVE_CACHE_H
#define FLEETSIM_TESTS_PROP_SUPPORT_NAIVE_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "sim/base/request.h"

#define NAIVE_UNLIMITED INT64_MAX

struct naive_engine {
    int64_t max_num_seqs;
    int64_t max_num_batched_tokens; /* ≥ max_num_seqs */
    int64_t block_size;
    int64_t num_gpu_blocks; /* or NAIVE_UNLIMITED */
    int64_t max_model_len;  /* or NAIVE_UNLIMITED */
    int64_t max_queue;      /* or NAIVE_UNLIMITED */
    bool enable_chunked_prefill;
    bool by_priority; /* scheduling_policy: priority; else first come, first served */
    bool enable_prefix_caching;
};

/* ceil(tokens / block_size): the blocks a sequence of that many stored tokens holds. */
int64_t naive_blocks(int64_t tokens, int64_t block_size);

/* What prefix caching met, for test_coverage; in blocks where nothing else is said. */
struct naive_story {
    uint64_t hit_free, hit_held; /* hits of blocks that nobody, somebody held */
    uint64_t hit_in_pass;        /* hits of what was published in the same pass */
    uint64_t hit_later;          /* hits of what a later request published */
    uint64_t hit_own;        /* hits of what the sequence published itself, before a preemption */
    uint64_t hit_output;     /* hits of what another's outputs have filled, at least in part */
    uint64_t hit_kind[4];    /* hits by enum naive_content_kind */
    uint64_t hit_part;       /* admissions whose hits end where the cached go on otherwise */
    uint64_t hit_capped;     /* admissions that would have hit one more, but for the last token */
    uint64_t hit_again;      /* admissions with hits, after a preemption */
    uint64_t hit_more_again; /* of those, with more than the sequence ever had */
    uint64_t shrunk, grown; /* admissions that hit more, fewer than when the sequence last found too
                               few free blocks */
    uint64_t evicted;       /* that could be hit */
    uint64_t duplicates;    /* full, of a content that was cached already */
    uint64_t overtaken;     /* of those, published by a later request */
    uint64_t behind_private; /* full and of a new content, behind one that cannot be hit */
    uint64_t unpublished;    /* published and taken back in the same pass */
};

/* ---- contents ---- */

enum naive_content_kind { NAIVE_SHARED, NAIVE_HASHED, NAIVE_STREAM, NAIVE_OWN };

struct naive_content;

/* What a block of tokens is. Compared byte by byte: no padding. */
struct naive_content_key {
    const struct naive_content *before; /* of the block in front of it; NULL: the first */
    uint64_t kind;                      /* enum naive_content_kind */
    uint64_t of;                        /* shared prompt, hash, stream, or request id */
    uint64_t place;    /* HASHED: which part of the hash's tokens; STREAM: the shared prompt */
    uint64_t position; /* STREAM: its first token: how much is shared */
};

struct naive_content {
    struct naive_content_key key;
    UT_hash_handle hh;
};

/* All contents seen in a run: equal ones are one object. */
struct naive_contents {
    struct naive_content *all; /* owned: a uthash table; NULL: empty */
};

/* The content of block `index` of a request (prompt, then outputs) in blocks of block_size tokens,
 * behind one of content `before`. */
const struct naive_content *naive_content_of(struct naive_contents *contents,
                                             const struct request *request, int64_t block_size,
                                             int64_t index, const struct naive_content *before);
void naive_contents_free(struct naive_contents *contents);

/* ---- blocks ---- */

struct naive_block {
    int64_t references;                  /* sequences that hold it; 0: it stands in the queue */
    const struct naive_content *content; /* it can be hit by; NULL: it cannot */
    const struct request *publisher;     /* with a content: who computed it */
    int64_t published_ps;                /* with a content: since when it can be hit */
    UT_hash_handle hh;                   /* in naive_cache.published, by content */
    TAILQ_ENTRY(naive_block) link;       /* in naive_cache.free */
    struct naive_block *next;            /* in naive_cache.all */
};

/* The blocks of one replica. */
struct naive_cache {
    const struct naive_engine *engine; /* borrowed; without prefix caching nothing is published */
    struct naive_contents *contents;   /* borrowed */
    struct naive_story *story;         /* borrowed */
    int64_t never_used;                /* blocks not made yet: they stand first in the queue */
    int64_t referenced;                /* KV blocks in use */
    TAILQ_HEAD(, naive_block) free;    /* of those made: in order of freeing */
    struct naive_block *published;     /* what can be hit */
    struct naive_block *all;           /* owned */
};

void naive_cache_init(struct naive_cache *cache, const struct naive_engine *engine,
                      struct naive_contents *contents, struct naive_story *story);
void naive_cache_free(struct naive_cache *cache);
/* How many blocks nobody holds. */
int64_t naive_cache_spare(const struct naive_cache *cache);
/* Whether a block is cached that goes on behind that content. */
bool naive_cache_goes_on(const struct naive_cache *cache, const struct naive_content *content);

/* ---- a sequence's blocks ---- */

struct naive_holder {
    const struct request *request; /* borrowed */
    struct naive_block **blocks;   /* owned; [count]: held, by place */
    int64_t count;
    const struct naive_content **chain; /* owned; [chain_count]: what its first full blocks are */
    int64_t chain_count;
};

void naive_holder_free(struct naive_holder *h);
/* The block that is cached for its block `index`; NULL: none. */
struct naive_block *naive_holder_find(struct naive_cache *cache, struct naive_holder *h,
                                      int64_t index);
/* How many of its first `most` blocks are cached, and of the first `hits` nobody holds. */
int64_t naive_holder_hits(struct naive_cache *cache, struct naive_holder *h, int64_t most);
int64_t naive_holder_free_hits(struct naive_cache *cache, struct naive_holder *h, int64_t hits);
/* It holds nothing yet, and now its first `hits` blocks, which are cached, of the target tokens it
 * is to store. */
void naive_holder_hit(struct naive_cache *cache, struct naive_holder *h, int64_t hits,
                      int64_t target, int64_t now_ps);
/* Its tokens [from, to) are to be stored: takes the blocks they need, then publishes those that are
 * full by them. */
void naive_holder_store(struct naive_cache *cache, struct naive_holder *h, int64_t from, int64_t to,
                        int64_t now_ps);
/* Its tokens [from, to) will not be stored after all: what they made full cannot be hit. */
void naive_holder_take_back(struct naive_cache *cache, struct naive_holder *h, int64_t from,
                            int64_t to);
/* Gives all its blocks up, from the last to the first. */
void naive_holder_release(struct naive_cache *cache, struct naive_holder *h);

#endif
