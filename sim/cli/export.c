#include "sim/cli/export.h"

#include <inttypes.h>

void export_print(const struct run *run, const char *path, FILE *out)
{
    const struct run_config *c = run_config(run);
    for (size_t i = 0; i < c->workload.count; i++) {
        uint32_t block = run_replay_block(run, i);
        if (block > 0)
            fprintf(out,
                    "replay %s with arrivals: {process: trace, file: %s, hash_block_size: %" PRIu32
                    "}\n",
                    config_class(c, i)->traffic.name, path, block);
    }
}
