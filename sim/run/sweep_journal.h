/* The journal of a sweep: what became of its runs, one line of JSON for each event, appended and
 * synced. A writer has a file of its own ("journal.jsonl", of a shard "journal-1of4.jsonl"), so
 * that shards may share a folder. A last line that was torn by a kill is ignored, and so is any
 * that cannot be read.
 *
 *   {"event": "begin", "version": "0.1.0", "program": "…", "runs": 648, "to_do": 600, "jobs": 2}
 *   {"event": "done", "run": "p00037", "fingerprint": "…", "file": "…", "digest": "…",
 * "wall_s": 1.2}
 *   {"event": "failed", "run": "p00038", "fingerprint": "…", "reason": "…"}
 *   {"event": "end", "done": 599, "failed": 1}
 */
#ifndef FLEETSIM_SIM_RUN_SWEEP_JOURNAL_H
#define FLEETSIM_SIM_RUN_SWEEP_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/run/sweep_check.h"

struct sweep_journal {
    const char *path; /* borrowed */
    int fd;
    bool torn; /* the last line was not written whole: the next begins anew */
};

/* What one line says of a run. */
struct sweep_line {
    bool done; /* else failed */
    const char *run;
    struct sweep_print fingerprint;
    struct sweep_print file; /* done: of the bytes of the result file */
    const char *digest;      /* done: 16 hexadecimal digits; the run's digest */
    const char *reason;      /* failed */
    double wall_s;
    uint64_t bytes, peak_rss_bytes;
    size_t order; /* of reading: a later line of the same writer is newer */
};

/* Opens for appending and locks it against other writers; false with the error. */
bool sweep_journal_open(struct sweep_journal *journal, const char *path, struct errors *errors);
void sweep_journal_close(struct sweep_journal *journal);
/* Each appends lines and syncs them; false with the error. */
bool sweep_journal_begin(struct sweep_journal *journal, const char *program, size_t runs,
                         size_t to_do, size_t jobs, struct errors *errors);
bool sweep_journal_put(struct sweep_journal *journal, const struct sweep_line *line,
                       struct errors *errors);
bool sweep_journal_end(struct sweep_journal *journal, size_t done, size_t failed,
                       struct errors *errors);

/* All lines on runs of every journal in the folder, in the arena. A folder without one has none. */
struct sweep_line *sweep_journal_read(const char *folder, size_t *count, struct arena *arena,
                                      struct errors *errors);

#endif
