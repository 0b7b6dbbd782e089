/* The numbers of a run that are looked at first, and how sure they are. */
#ifndef FLEETSIM_SIM_CLI_HEADLINE_H
#define FLEETSIM_SIM_CLI_HEADLINE_H

#include <stddef.h>

#include "sim/cli/json_out.h"
#include "sim/cli/text.h"
#include "sim/run/interval.h"
#include "sim/run/run_outcome.h"

struct headline {
    const char *key;                                      /* in JSON: "ttft_p99_s" */
    const char *name;                                     /* "TTFT p99" */
    const char *unit;                                     /* of the text: "s" */
    double (*value)(const struct metrics_summary *whole); /* in JSON's unit; NaN: undefined */
    double scale;                                         /* text's unit / JSON's */
    bool
        quantile; /* over replications: a median and order statistics, not a mean and Student's t */
};
enum { HEADLINE_COUNT = 10 };
extern const struct headline headline_table[HEADLINE_COUNT];

/* What a table of intervals over replications says below. */
#define HEADLINE_NOTE                                                                              \
    "a ± b: mean, by Student's t; a (b to c): median of the replications, by order statistics, "  \
    "from 6 on.\n"

/* What values of one headline, one per replication, say together. */
struct interval_range headline_range(const struct headline *headline, const double *values,
                                     size_t count);
/* "1.234 ± 0.056" or "1.097 (0.990 to 1.210)", in the text's unit. */
struct text headline_text(const struct headline *headline, const struct interval_range *range);
/* A number in the text's unit, with as many digits as it deserves. */
struct text headline_number(const struct headline *headline, double value);
/* An object of the headline's key: mid, low, high, method. */
void headline_json(struct json *json, const struct headline *headline,
                   const struct interval_range *range);

/* Intervals from inside one run, where something can be said. */
struct headline_within {
    struct interval in_flight, ttft_mean; /* by batch means; half NaN: not to be had */
    struct interval_range
        quantiles[HEADLINE_COUNT]; /* in order of headline_table, of those that are
                quantiles: by order statistics, as if requests were independent */
    const char *unless;            /* why there are no batch means; NULL: there are */
};
struct headline_within headline_within_run(const struct run_outcome *outcome);
/* A headline's interval; NULL: it has none inside a run. */
const struct interval_range *headline_within_find(const struct headline_within *within,
                                                  const struct headline *headline);

#endif
