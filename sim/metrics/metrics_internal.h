/* Shared by the files of sim/metrics only. */
#ifndef FLEETSIM_SIM_METRICS_METRICS_INTERNAL_H
#define FLEETSIM_SIM_METRICS_METRICS_INTERNAL_H

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/histogram.h"
#include "sim/metrics/metrics.h"

/* Everything summed over one (row, pool), in integers. Times are replica time. */
/* What prefix caches found. */
struct metrics_found {
    uint64_t lookup_tokens, hit_tokens, lookup_blocks, hit_blocks, rehit_tokens;
};

struct metrics_cell {
    uint64_t arrived, admitted, outcomes[OUTCOME_COUNT], zero_output, preemptions;
    uint64_t in_flight_end;
    uint64_t prompt, cached;                /* filed at admission */
    struct metrics_found found;             /* likewise */
    uint64_t computed, recomputed, emitted; /* filed at the end */
    uint64_t output;                        /* filed at emission */
    uint64_t prefill_executed, decode_executed, iterations, batch_sum;
    uint64_t attained, missed; /* filed under arrival */
    uint64_t gauge_samples, running_sum, waiting_sum;
    uint64_t load_max_sum, load_mean_sum; /* the mean in millionths */
    int128 kv_sum, kv_total_sum;
    int64_t kv_max; /* -1: none */
    bool kv_unlimited;
    int128 busy_ps, decode_ps, work_ps; /* of iterations, split at edges by time */
    int128 state_ps[REPLICA_STATE_COUNT], in_flight_ps;
    int128 surplus_ps; /* billed beyond what was held */
    uint64_t held_max, ready_max;
};

/* Everything summed over one (row, class). */
struct metrics_class_cell {
    uint64_t arrived, admitted, completed, attained, missed, prompt, cached;
    struct metrics_found found;
};

struct metrics_set {
    struct histogram ttft, tpot, itl, e2e, queue;
};

/* A stretch between two edges. It belongs to one row, or to none (before warmup). */
struct metrics_segment {
    int64_t start_ps, end_ps;
    size_t row;
    struct metrics_cell *cells; /* [pools + 1]: the last is for requests without a pool, and for
                                   the fleet's maxima */
    struct metrics_class_cell *class_cells; /* [classes]; NULL with one class */
    struct metrics_set *sets;               /* owned; [pools] */
};

/* One launch of a replica. */
struct metrics_launch {
    int64_t launched_ps, since_ps, released_ps; /* TIME_NONE where not (yet) */
    uint8_t state;                              /* enum replica_state */
};

/* A pool while the run goes on. Time spent in a state up to T is acc + count · T. */
struct metrics_live {
    int128 state_acc[REPLICA_STATE_COUNT], in_flight_acc;
    int64_t state_count[REPLICA_STATE_COUNT], in_flight, cut;
    int64_t ahead; /* of in_flight: arrived less ended at the very end of the current segment */
    int128 state_mark[REPLICA_STATE_COUNT], in_flight_mark; /* values at the segment's start */
    struct metrics_launch *launches;                        /* owned; by launch number */
    size_t launch_count, launch_capacity;
    int64_t kv_peak; /* -1: not told */
    double floor_h, ideal_h, peak_h;
    double forecast_error;
};

struct metrics_class_live {
    uint64_t arrived, admitted, outcomes[OUTCOME_COUNT], zero_output, preemptions;
    uint64_t attained, missed;
    uint64_t computed, recomputed, emitted;
};
/* What one class had one pool compute, of counted requests, filed at their end. */
struct metrics_class_work {
    uint64_t prefill, output;
};

/* Facts that only the audit reads. What a completed request implies (it was admitted, it had a
 * first token unless it has no outputs) is checked when it ends and then derived from the cells;
 * the ledger keeps what cannot be derived. */
struct metrics_ledger {
    int64_t last_ps;       /* of arrivals and ends */
    uint64_t disordered;   /* earlier than last_ps, or not at the record's own time */
    uint64_t inconsistent; /* records that contradict themselves */
    uint64_t record_prompt, record_cached;
    uint64_t first_tokens;  /* by observations */
    int128 sojourn_ps;      /* Σ(end − arrival) of ends that are not in the e2e histograms */
    uint64_t single_output; /* counted, completed with one output: no TPOT */
    /* Of ends other than completed; counted: of counted requests. */
    uint64_t others_admitted, others_first, counted_others_admitted, counted_others_first;
    uint64_t state_faults;
};

struct metrics {
    struct arena arena; /* names, audit texts */
    struct metrics_pool *pools;
    struct metrics_class *classes;
    size_t pool_count, class_count;
    int64_t warmup_ps, horizon_ps, interval_ps, end_ps;
    uint64_t counted_ps;  /* from warmup to horizon */
    size_t intervals;     /* before the horizon */
    size_t rows_finished; /* ≤ intervals + 1 */
    uint32_t stray_pool;  /* where an unset pool index goes: 0 with one pool, else pool_count */
    bool per_class;       /* more than one class */
    bool finished, audited;

    struct metrics_segment current, next;
    struct metrics_cell *cells;     /* owned; [(intervals + 1) · (pools + 1)] */
    struct metrics_cell *outside;   /* owned; [pools + 1]: before warmup, uncounted requests */
    struct metrics_hour *hours;     /* owned; [(intervals + 1) · pools] */
    struct metrics_hour *hours_all; /* owned; [intervals + 1] */
    struct metrics_live *live;      /* owned; [pools + 1] */
    int64_t fleet_held, fleet_ready;
    struct metrics_set *totals;            /* owned; [pools + 1]: whole run by pool; [pools]: all */
    struct metrics_set *scratch;           /* owned; one, for the fleet's row */
    struct metrics_set *class_sets;        /* owned; [classes] (ttft, tpot, e2e) */
    struct metrics_class_live *class_live; /* owned; [classes] */
    struct metrics_class_work *class_work; /* owned; [classes · (pools + 1)] */
    /* With more than one class; else NULL. */
    struct metrics_class_cell *class_cells;   /* owned; [(intervals + 1) · classes] */
    struct metrics_class_cell *class_outside; /* owned; [classes] */
    struct metrics_class_hour *class_hours;   /* owned; [(intervals + 1) · classes] */
    struct metrics_ledger ledger;
    uint64_t router_decisions, router_stale;

    struct metrics_scale_event *scale_events; /* owned */
    size_t scale_count, scale_capacity;
    struct metrics_summary *summaries;             /* owned; [1 + pools] */
    struct metrics_class_summary *class_summaries; /* owned; [classes] */
    struct metrics_check *checks;                  /* owned */
    size_t check_count, check_capacity;
};

extern const struct metrics_latency metrics_latency_none; /* of nothing */

/* The edge that follows time_ps (> time_ps): interval edge, warmup or horizon; TIME_NEVER from the
 * horizon on. */
int64_t metrics_edge_after(const struct metrics *m, int64_t time_ps);
/* The cells of the row that time_ps falls in; those outside every row before warmup. */
struct metrics_cell *metrics_cells_at(const struct metrics *m, int64_t time_ps);
/* The same of classes; only with more than one. */
struct metrics_class_cell *metrics_class_cells_at(const struct metrics *m, int64_t time_ps);
/* The open segment a stamp falls in. */
static inline const struct metrics_segment *metrics_segment_at(const struct metrics *m,
                                                               int64_t time_ps)
{
    debug_check(time_ps >= m->current.start_ps);
    if (__builtin_expect(time_ps < m->current.end_ps, 1)) {
        return &m->current;
    }
    check_msg(time_ps < m->next.end_ps, "an interval's edge was passed without metrics_roll");
    return &m->next;
}

/* Observations of replicas and decisions, self being the metrics (metrics_replicas.c). */
void metrics_replicas_take(void *self, const struct obs *obs);
void metrics_replicas_scale(void *self, const struct obs *obs);
/* Largest replica counts of a pool, and of the fleet, since the segment of these cells began. */
void metrics_replicas_maxima(const struct metrics *m, struct metrics_cell *cells, uint32_t pool);
/* The billing surplus of a launch held for held_ps: increments and minimum. */
int64_t metrics_billing_surplus(const struct metrics_pool *pool, int64_t held_ps);
/* Latency columns of the segment's row from its histograms (metrics_rows.c). */
void metrics_rows_close(struct metrics *m, const struct metrics_segment *segment);
/* Summaries (metrics_rows.c). */
void metrics_rows_summarise(struct metrics *m);
/* Rows of classes (metrics_classes.c): one interval's, and the whole run's once the summaries of
 * pools are there but for slo_met. */
void metrics_classes_refresh(struct metrics *m, size_t row);
void metrics_classes_summarise(struct metrics *m);
/* Definitions that rows share (metrics_rows.c). seconds: what goodput divides by. */
struct metrics_slo metrics_slo_of(uint64_t arrived, uint64_t attained, uint64_t missed,
                                  double seconds);
struct metrics_prefix metrics_prefix_of(const struct metrics_found *found);
struct metrics_latency metrics_latency_of(const struct histogram *h);
void metrics_found_add(struct metrics_found *into, const struct metrics_found *from);
/* Empties all histograms of a set. */
void metrics_set_clear(struct metrics_set *set);

#endif
