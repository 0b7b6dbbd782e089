/* What a point of a sweep comes to before it runs: whether its scenario is sound, and the
 * fingerprint that a result must have to be up to date. */
#ifndef FLEETSIM_SIM_RUN_SWEEP_CHECK_H
#define FLEETSIM_SIM_RUN_SWEEP_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/run/sweep_points.h"

/* A fingerprint: 128 bits in hexadecimal. */
enum { SWEEP_PRINT_MAX = 33 };
struct sweep_print {
    char hex[SWEEP_PRINT_MAX];
};

struct sweep_file_print; /* of a file that was read, so that it is read once */

struct sweep_check {
    const struct sweep_plan *plan;
    const char *base;        /* absolute path of the scenario; arena */
    const char *here;        /* the working directory, which messages leave out; arena */
    const char *const *sets; /* "path=value" for all points, before their own; borrowed */
    size_t set_count;
    struct arena *arena; /* borrowed */
    struct sweep_print program;
    struct sweep_file_print *files; /* arena */
    size_t file_count, file_capacity;
    bool reads_traces;   /* checking leaves the traces to the run: a scan would take as long */
    struct errors *said; /* borrowed: every message once, in the places of sweep.yaml */
};

/* Of one point. */
struct sweep_checked {
    bool valid;
    struct sweep_print print; /* of the scenario as applied, of every file it reads, of the program;
                                 when not valid, of the texts it is made of */
    const char *reason;       /* arena; when not valid: its first error, on one line */
    double requests;          /* expected of one run; NaN: unknown */
};

/* False with errors when the base or the program cannot be read. */
bool sweep_check_init(struct sweep_check *check, const struct sweep_plan *plan,
                      const char *const *sets, size_t set_count, struct arena *arena,
                      struct errors *errors);
/* Loads and checks the scenario of a point. Errors and warnings go to check->said, each once. */
struct sweep_checked sweep_check_point(struct sweep_check *check, size_t point);
/* Whether a point's fingerprint is still the same: the files it is made of may have changed since.
 */
bool sweep_check_still(const struct sweep_check *check, size_t point,
                       const struct sweep_print *print);
/* The fingerprint of a run: that of its point and its replication. */
struct sweep_print sweep_check_print(const struct sweep_plan *plan, size_t run,
                                     const struct sweep_checked *point);
/* All sets of a run, "replication=…" included, for run_request. In the arena. */
const char *const *sweep_check_sets(const struct sweep_check *check, size_t run, size_t *count,
                                    struct arena *arena);
/* Copies errors with the places in --set texts of that point turned into places of sweep.yaml;
 * those already there are left out. */
void sweep_check_translate(const struct sweep_check *check, size_t point, const struct errors *from,
                           struct errors *to);
/* "scenario.yaml:3:5: …" of the first error, and how many more there are. In the arena. */
const char *sweep_check_reason(const struct errors *errors, struct arena *arena);
/* Of the content of a file, and its length; false: it cannot be read (errno). */
bool sweep_check_file(const char *path, struct sweep_print *print, uint64_t *bytes);
/* Of bytes: the same as of a file that holds them. */
struct sweep_print sweep_check_bytes(const void *bytes, size_t size);

#endif
