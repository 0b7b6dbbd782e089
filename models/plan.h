/* The closed-form estimate of a fleet: users → requests → tokens/s → GPUs → dollars, every
 * assumption a named input. The chain of a classic planning exercise; `fleetsim plan` prints it
 * beside what the simulator would use. */
#ifndef FLEETSIM_MODELS_PLAN_H
#define FLEETSIM_MODELS_PLAN_H

#include <stdbool.h>

#include "models/hardware.h"
#include "models/llm.h"
#include "models/memory.h"
#include "models/price.h"
#include "sim/base/errors.h"

enum { PLAN_HOURS = 24 };

/* Hourly factors, mean 1, for a peak-to-average factor. The workload layer owns the shapes. */
struct plan_curve {
    bool (*fill)(void *self, double peak_factor, double hourly[PLAN_HOURS]); /* false: no such */
    void *self;
};

struct plan_input {
    double users; /* daily active */
    double sessions;
    double requests; /* per session */
    double prompt_tokens;
    double output_tokens;
    double peak_factor;          /* over the daily average */
    double decode_tokens_per_s;  /* per GPU */
    double prefill_tokens_per_s; /* per GPU */
    double utilization;          /* target, (0, 1] */
    double usd_low, usd_high;    /* per GPU-hour */
    double first_token_s;        /* in queue and prefill */
    double tpot_s;               /* per output token */
    double kv_bytes_per_token;   /* whole model; NaN: not known */
    double gpus_per_replica;
    double month_days;
    struct plan_curve curve;
};
/* Fills month_days 30, gpus_per_replica 1, first_token 0.5 s, tpot 30 ms, everything unknown NaN.
 */
struct plan_input plan_input_default(void);

struct plan_result {
    double requests_per_day, average_qps, peak_qps;
    double peak_prefill_tokens_per_s, peak_decode_tokens_per_s;
    double decode_gpus, prefill_gpus; /* at 100 % */
    double gpus_exact;                /* at the target utilisation */
    double replica_qps;               /* requests/s of one replica at 100 % */
    double gpus_peak;                 /* rounded up to whole replicas */
    double hourly_gpus[PLAN_HOURS];   /* the same, each hour */
    double peak_gpu_hours;            /* per day, provisioned for the peak */
    double ideal_gpu_hours;           /* per day, following the curve */
    double work_gpu_hours;            /* per day, at 100 % utilisation, not rounded */
    double tokens_per_day;
    double usd_day_low, usd_day_high; /* ideal at the low price, peak at the high one */
    double usd_month_low, usd_month_high;
    double usd_user_low, usd_user_high;   /* per user and month */
    double usd_mtok_low, usd_mtok_high;   /* per million tokens, in and out */
    double usd_input_low, usd_input_high; /* per million prompt tokens: their share of the work */
    double usd_output_low, usd_output_high;
    double seconds_in_system; /* Little's law */
    double streams;           /* concurrent at peak */
    double streams_per_gpu;
    double streams_implied; /* that the decode rate allows at this time per token */
    double kv_per_stream, kv_total, kv_per_gpu; /* bytes, at the final length */
};
/* false when the curve has no such peak factor. */
bool plan_estimate(const struct plan_input *input, struct plan_result *result);

/* Against an API's prices. */
struct plan_break_even {
    double api_usd_day;
    double self_usd_day_low, self_usd_day_high; /* the same day on own GPUs */
    double utilization_low, utilization_high;   /* of all paid GPU-hours, at which both cost the
                                                   same, at the low and the high price; above 1:
                                                   never */
    double requests_low,
        requests_high; /* per day from which on own GPUs are cheaper, the idle hours
                          of whole replicas and the curve included; NaN: never */
};
/* Volumes are followed with at least `gpus_per_replica` GPUs always on. */
bool plan_against_api(const struct plan_input *input, const struct price_api *api,
                      struct plan_break_even *result);

/* One assumption changed by ±50 %. */
enum { PLAN_ASSUMPTIONS = 10 };
struct plan_sensitivity {
    const char *assumption;
    double base;
    double usd_less, usd_more; /* per month, mean of low and high; NaN where it cannot change so */
    double swing;              /* |more − less| / base cost */
};
/* Sorted, the largest swing first. Returns how many. */
size_t plan_sensitivity(const struct plan_input *input,
                        struct plan_sensitivity out[PLAN_ASSUMPTIONS]);

/* Warnings where a rate is beyond what the GPU can do: prefill beyond the dense peak, decode beyond
 * the bandwidth. precision resolved. Returns how many. cached: share of prompt tokens found in a
 * prefix cache, which need no computing. */
size_t plan_warn_physics(const struct plan_input *input, const struct llm_spec *llm,
                         const struct gpu_spec *gpu, const struct precision *precision,
                         double cached, struct errors *errors, const struct source_pos *where);
/* The most prompt tokens/s of one GPU: dense peak / FLOPs per token, attention at `context`. */
double plan_prefill_limit(const struct llm_spec *llm, const struct gpu_spec *gpu,
                          const struct precision *precision, double context);

#endif
