/* The run digest: a 64-bit fingerprint of every observable event, in order. Equal digests are the
 * promise "same run". Not cryptographic. Inline: it runs several times per request. */
#ifndef FLEETSIM_SIM_BASE_DIGEST_H
#define FLEETSIM_SIM_BASE_DIGEST_H

#include <stdint.h>

struct digest {
    uint64_t state;
    uint64_t events;
};

static inline void digest_init(struct digest *d)
{
    d->state = UINT64_C(0x9E3779B97F4A7C15);
    d->events = 0;
}
/* Absorbs one word: multiply, fold the 128-bit product. Order matters. */
static inline void digest_word(struct digest *d, uint64_t word)
{
    unsigned __int128 p = (unsigned __int128)(d->state ^ word) * UINT64_C(0xD6E8FEB86659FD93);
    d->state = (uint64_t)p ^ (uint64_t)(p >> 64) ^ UINT64_C(0xA0761D6478BD642F);
}
/* One event: its kind, time, subject and a value. */
static inline void digest_event(struct digest *d, uint64_t kind, int64_t time_ps, uint64_t subject,
                                uint64_t value)
{
    /* Kind and value are small: turned, they meet the high bits, which time and subject leave free.
     */
    digest_word(d, (uint64_t)time_ps ^ (kind << 60 | kind >> 4));
    digest_word(d, subject ^ (value << 32 | value >> 32));
    d->events++;
}

#endif
