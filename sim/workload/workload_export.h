/* --export-trace: writes requests as a trace of our own format, which replays to the identical
 * requests. What their prompts hold in common goes into hash_ids: one 64-bit name for each full
 * block of tokens that another request may have too. */
#ifndef FLEETSIM_SIM_WORKLOAD_WORKLOAD_EXPORT_H
#define FLEETSIM_SIM_WORKLOAD_WORKLOAD_EXPORT_H

#include "sim/workload/workload.h"

struct workload_export_setup {
    const char *const *class_names; /* [class_count], borrowed until close */
    const uint32_t *block_tokens;   /* [class_count], borrowed until close: tokens that a hash_id of
                                       the class's requests stands for, for a trace those of its
                                       hashes; 0: the class has no hash_ids */
    size_t class_count;
    uint64_t content_key; /* workload_content_key */
};

struct workload_export;

/* Begins path: gzip when its name ends in ".gz", plain otherwise; written beside its name and
 * renamed when whole. Columns arrival_s (exact decimals), prompt_tokens, output_tokens, class,
 * session, turn, and hash_ids if some class has them. NULL after reporting. */
struct workload_export *workload_export_open(const char *path,
                                             const struct workload_export_setup *setup,
                                             struct errors *errors);
/* One row; requests come in order of arrival. A failure shows at close. */
void workload_export_add(struct workload_export *export, const struct request *request);
/* Returns the number of rows, or −1 after reporting: nothing is left at path then, as when the rows
 * are not kept. */
int64_t workload_export_close(struct workload_export *export, bool keep, struct errors *errors);

/* All of the above for every request that is left of a workload that is not live. */
int64_t workload_export(struct workload *w, const struct workload_export_setup *setup,
                        const char *path, struct errors *errors);

#endif
