#include "sim/cli/replicate.h"

#include <stdio.h>
#include <stdlib.h>

size_t replicate_count(const char *text, const char *who)
{
    char *end = NULL;
    if (!text)
        return 1;
    unsigned long count = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || count < 1 || count > REPLICATIONS_MAX) {
        fprintf(stderr, "%s: --replications is a number from 1 to %d\n", who, REPLICATIONS_MAX);
        return 0;
    }
    return count;
}

struct options_list replicate_sets(const struct options_list *sets, size_t replication,
                                   struct arena *arena)
{
    struct options_list all = {.items = arena_alloc(arena, (sets->count + 1) * sizeof *all.items)};
    for (size_t i = 0; i < sets->count; i++)
        all.items[all.count++] = sets->items[i];
    all.items[all.count++] = arena_printf(arena, "replication=%zu", replication);
    return all;
}
