/* What every column of the results means: the one place for names, units and definitions. */
#include <stddef.h>

#include "sim/metrics/metrics.h"

#define HOUR(type, member, name, unit, long_name, doc)                                             \
    {                                                                                              \
        name, COLUMN_##type, offsetof(struct metrics_hour, member), unit, long_name, doc           \
    }
#define SUM(type, member, name, unit, long_name, doc)                                              \
    {                                                                                              \
        name, COLUMN_##type, offsetof(struct metrics_summary, member), unit, long_name, doc        \
    }
#define CLASS(type, member, name, unit, long_name, doc)                                            \
    {                                                                                              \
        name, COLUMN_##type, offsetof(struct metrics_class_summary, member), unit, long_name, doc  \
    }
#define CLASS_HOUR(type, member, name, unit, long_name, doc)                                       \
    {                                                                                              \
        name, COLUMN_##type, offsetof(struct metrics_class_hour, member), unit, long_name, doc     \
    }
#define SCALE(type, member, name, unit, long_name, doc)                                            \
    {                                                                                              \
        name, COLUMN_##type, offsetof(struct metrics_scale_event, member), unit, long_name, doc    \
    }
#define RECORD(type, member, name, unit, long_name, doc)                                           \
    {                                                                                              \
        name, COLUMN_##type, offsetof(struct request_record, member), unit, long_name, doc         \
    }

#define NEAREST_RANK "; nearest rank, relative error at most 1/256"

/* Seven columns of one kind of duration. */
#define LATENCY(ROW, member, name, title, population)                                              \
    ROW(UINT64, member.count, name "_count", "1", title ": count", population),                    \
        ROW(TIME, member.mean_ps, name "_mean", "s", title ": mean",                               \
            "Mean over " name "_count values."),                                                   \
        ROW(TIME, member.p50_ps, name "_p50", "s", title ": median",                               \
            "Median over " name "_count values" NEAREST_RANK "."),                                 \
        ROW(TIME, member.p90_ps, name "_p90", "s", title ": 90th percentile",                      \
            "90th percentile over " name "_count values" NEAREST_RANK "."),                        \
        ROW(TIME, member.p95_ps, name "_p95", "s", title ": 95th percentile",                      \
            "95th percentile over " name "_count values" NEAREST_RANK "."),                        \
        ROW(TIME, member.p99_ps, name "_p99", "s", title ": 99th percentile",                      \
            "99th percentile over " name "_count values" NEAREST_RANK                              \
            "; to be defended it needs at least 100."),                                            \
        ROW(TIME, member.max_ps, name "_max", "s", title ": maximum",                              \
            "Largest of " name "_count values, exact.")

#define TTFT_POPULATION                                                                            \
    "Times to first token (first token − arrival) of counted requests, filed under the first "   \
    "token. A request without outputs has none."
#define TPOT_POPULATION                                                                            \
    "Times per output token ((end − first token) / (outputs − 1)) of completed counted "       \
    "requests with two outputs or more, filed under completion."
#define ITL_POPULATION                                                                             \
    "Gaps between successive tokens of a request, all requests, filed under the later token. "     \
    "Gaps across a preemption are among them."
#define E2E_POPULATION                                                                             \
    "Times from arrival to last token of completed counted requests, filed under completion."
#define QUEUE_POPULATION                                                                           \
    "Times from arrival to the start of the first step that computed any of the request, counted " \
    "requests, filed under admission."

#define LATENCIES(ROW)                                                                             \
    LATENCY(ROW, ttft, "ttft", "time to first token", TTFT_POPULATION),                            \
        LATENCY(ROW, tpot, "tpot", "time per output token", TPOT_POPULATION),                      \
        LATENCY(ROW, itl, "itl", "inter-token latency", ITL_POPULATION),                           \
        LATENCY(ROW, e2e, "e2e", "end-to-end time", E2E_POPULATION),                               \
        LATENCY(ROW, queue, "queue", "queueing time", QUEUE_POPULATION)

#define SLO(ROW)                                                                                   \
    ROW(UINT64, slo.attained, "slo_attained", "1", "requests that attained their SLO",             \
        "Completed requests for which every stated limit (TTFT, TPOT, E2E) holds, filed under "    \
        "arrival. A limit on a duration the request does not have holds."),                        \
        ROW(UINT64, slo.missed, "slo_missed", "1", "requests that missed their SLO",               \
            "Requests that broke a limit, or were refused, unservable or cancelled, filed under "  \
            "arrival."),                                                                           \
        ROW(UINT64, slo.undecided, "slo_undecided", "1", "requests undecided",                     \
            "Arrived and not ended yet: in flight when the run was cut (or the file written)."),   \
        ROW(DOUBLE, slo.attainment, "slo_attainment", "1", "SLO attainment",                       \
            "slo_attained / arrived."),                                                            \
        ROW(DOUBLE, slo.attainment_upper, "slo_attainment_upper", "1",                             \
            "SLO attainment, upper bound", "(slo_attained + slo_undecided) / arrived."),           \
        ROW(DOUBLE, slo.goodput, "goodput", "s-1", "goodput",                                      \
            "slo_attained / the time covered: requests per second that attain their SLO.")

#define PREFIX(ROW)                                                                                \
    ROW(UINT64, prefix.lookup_tokens, "prefix_lookup_tokens", "1", "prompt tokens looked up",      \
        "Prompt tokens of counted requests that were looked up in a prefix cache, at first "       \
        "admission: all of them at pools with enable_prefix_caching."),                            \
        ROW(UINT64, prefix.hit_tokens, "prefix_hit_tokens", "1", "prompt tokens found",            \
            "Of those, found. A request counts once, however often it was tried before it "        \
            "fitted."),                                                                            \
        ROW(UINT64, prefix.lookup_blocks, "prefix_lookup_blocks", "1", "blocks looked up",         \
            "Full KV blocks of the prompts looked up."),                                           \
        ROW(UINT64, prefix.hit_blocks, "prefix_hit_blocks", "1", "blocks found",                   \
            "Of those, found."),                                                                   \
        ROW(DOUBLE, prefix.token_hit_rate, "prefix_token_hit_rate", "1", "token hit rate",         \
            "prefix_hit_tokens / prefix_lookup_tokens."),                                          \
        ROW(DOUBLE, prefix.block_hit_rate, "prefix_block_hit_rate", "1", "block hit rate",         \
            "prefix_hit_blocks / prefix_lookup_blocks."),                                          \
        ROW(UINT64, prefix.rehit_tokens, "prefix_rehit_tokens", "1",                               \
            "tokens found after preemptions",                                                      \
            "Tokens of prompts and outputs found at admissions after a preemption; not among "     \
            "prefix_hit_tokens.")

#define GPU_HOURS(ROW, where)                                                                      \
    ROW(DOUBLE, gpu_hours.provisioning, "gpu_hours_provisioning", "h", "GPU hours provisioning",   \
        "Replica time from launch to weights, × GPUs per replica" where "."),                      \
        ROW(DOUBLE, gpu_hours.loading, "gpu_hours_loading", "h", "GPU hours loading",              \
            "Loading weights, engine start and warm-up" where "."),                                \
        ROW(DOUBLE, gpu_hours.serving, "gpu_hours_serving", "h", "GPU hours serving",              \
            "Ready and running an iteration" where "."),                                           \
        ROW(DOUBLE, gpu_hours.idle, "gpu_hours_idle", "h", "GPU hours idle",                       \
            "Ready with nothing to do" where "."),                                                 \
        ROW(DOUBLE, gpu_hours.draining, "gpu_hours_draining", "h", "GPU hours draining",           \
            "Finishing what it has before release" where "."),                                     \
        ROW(DOUBLE, gpu_hours.starting, "gpu_hours_starting", "h", "GPU hours starting",           \
            "provisioning + loading."),                                                            \
        ROW(DOUBLE, gpu_hours.ready, "gpu_hours_ready", "h", "GPU hours ready",                    \
            "serving + idle."),                                                                    \
        ROW(DOUBLE, gpu_hours.held, "gpu_hours_held", "h", "GPU hours held",                       \
            "starting + ready + draining."),                                                       \
        ROW(DOUBLE, gpu_hours.billed, "gpu_hours_billed", "h", "GPU hours billed",                 \
            "held, plus what rounding a launch up to whole increments and to the minimum adds "    \
            "(booked where it is released, at the latest at the horizon). Nothing after the "      \
            "horizon is billed.")

#define USD(ROW, whole)                                                                            \
    ROW(DOUBLE, usd.total, "usd", "$", "cost", "Billed GPU hours × price per GPU hour" whole),     \
        ROW(DOUBLE, usd.low, "usd_low", "$", "cost at the low price",                              \
            "The same at the pool's low price; a pool without one adds its price."),               \
        ROW(DOUBLE, usd.high, "usd_high", "$", "cost at the high price",                           \
            "The same at the pool's high price; a pool without one adds its price."),              \
        ROW(DOUBLE, usd.input, "usd_input", "$", "cost of input",                                  \
            "The part of usd that prefill pays: of each step what the decodes alone would not "    \
            "have taken; idle and starting time in the same ratio."),                              \
        ROW(DOUBLE, usd.output, "usd_output", "$", "cost of output",                               \
            "The part of usd that decode pays: usd − usd_input."),                                 \
        ROW(DOUBLE, usd.per_mtok_total, "usd_per_mtok_total", "$ per million tokens",              \
            "cost per million tokens",                                                             \
            "usd / (tokens_prompt + tokens_output) × 10⁶: prompt tokens include cached ones."),    \
        ROW(DOUBLE, usd.per_mtok_input, "usd_per_mtok_input", "$ per million tokens",              \
            "cost per million input tokens", "usd_input / tokens_prompt × 10⁶."),                  \
        ROW(DOUBLE, usd.per_mtok_output, "usd_per_mtok_output", "$ per million tokens",            \
            "cost per million output tokens", "usd_output / tokens_output × 10⁶.")

const struct column metrics_hour_key_columns[] = {
    HOUR(TIME, start_ps, "start", "s", "start of the interval", "Since the scenario's start."),
    HOUR(TIME, end_ps, "end", "s", "end of the interval", "Since the scenario's start."),
    HOUR(TEXT, pool, "pool", "1", "pool", "Name of the pool; \"all\" for the whole fleet."),
    {0},
};

const struct column metrics_hour_columns[] = {
    HOUR(TIME, covered_ps, "covered", "s", "time covered",
         "The part of the interval after warmup: what means and rates divide by, and all that the "
         "row holds; an interval before warmup is empty."),
    HOUR(UINT32, is_drain, "is_drain", "1", "row of the drain",
         "1 for the row after the horizon, in which the last requests finish; it is not billed."),
    HOUR(UINT64, requests.arrived, "arrived", "1", "requests arrived",
         "Counted requests (arrival in [warmup, horizon)) that arrived in the interval."),
    HOUR(UINT64, requests.admitted, "admitted", "1", "requests admitted",
         "Counted requests whose first step began in the interval."),
    HOUR(UINT64, requests.completed, "completed", "1", "requests completed",
         "Counted requests that emitted their last token in the interval."),
    HOUR(UINT64, requests.refused, "refused", "1", "requests refused",
         "Counted requests turned away because a queue was full or no pool could take them."),
    HOUR(UINT64, requests.unservable, "unservable", "1", "requests unservable",
         "Counted requests that could never fit in KV memory or in max_model_len."),
    HOUR(UINT64, requests.cancelled, "cancelled", "1", "requests cancelled",
         "Counted requests whose client left before the end."),
    HOUR(UINT64, requests.zero_output, "zero_output", "1", "requests without outputs",
         "Completed requests that asked for no output token: no TTFT, no TPOT; also in completed."),
    HOUR(UINT64, requests.in_flight, "in_flight_end", "1", "requests in flight at the end",
         "Running or waiting when the interval ends, all requests (what arrives or ends at that "
         "very instant belongs to the next); at the end of a run that was cut: those cut."),
    HOUR(UINT64, requests.preemptions, "preemptions", "1", "preemptions",
         "Times a counted request lost its KV blocks and went back to the queue."),
    HOUR(UINT64, tokens.prompt, "tokens_prompt", "1", "prompt tokens",
         "Prompt tokens of counted requests admitted in the interval, cached ones included."),
    HOUR(UINT64, tokens.cached, "tokens_cached", "1", "prompt tokens found in the prefix cache",
         "Prompt tokens found in the prefix cache that the request had never stored: at first "
         "admission, or after a preemption."),
    HOUR(UINT64, tokens.computed, "tokens_computed", "1", "prompt tokens computed",
         "Prompt tokens computed for the first time, of counted requests, filed under their end."),
    HOUR(UINT64, tokens.recomputed, "tokens_recomputed", "1", "tokens recomputed",
         "Tokens computed again after preemptions, of counted requests, filed under their end."),
    HOUR(UINT64, tokens.output, "tokens_output", "1", "output tokens",
         "Output tokens emitted in the interval, all requests."),
    HOUR(UINT64, tokens.prefill_executed, "tokens_prefill_executed", "1", "tokens prefilled",
         "Tokens of prompt chunks in iterations that ended in the interval, recomputed ones "
         "included, all requests."),
    HOUR(UINT64, tokens.decode_executed, "tokens_decode_executed", "1", "tokens decoded",
         "Decodes in iterations that ended in the interval, all requests."),
    PREFIX(HOUR),
    LATENCIES(HOUR),
    SLO(HOUR),
    HOUR(DOUBLE, in_flight_mean, "in_flight_mean", "1", "requests in flight",
         "Exact time average of running plus waiting requests, all requests."),
    HOUR(DOUBLE, in_flight_per_ready_gpu, "in_flight_per_ready_gpu", "1",
         "requests in flight per ready GPU", "in_flight_mean / gpus_ready_mean."),
    HOUR(UINT64, gauge_samples, "gauge_samples", "1", "gauge samples",
         "Samples behind running_mean, waiting_mean, kv_occupancy_mean and kv_blocks_max."),
    HOUR(DOUBLE, running_mean, "running_mean", "1", "requests running", "Mean over the samples."),
    HOUR(DOUBLE, waiting_mean, "waiting_mean", "1", "requests waiting", "Mean over the samples."),
    HOUR(DOUBLE, kv_occupancy_mean, "kv_occupancy_mean", "1", "KV occupancy",
         "Sum over the samples of KV blocks in use / of all KV blocks; undefined when unlimited."),
    HOUR(DOUBLE, load_max_over_mean, "load_max_over_mean", "1", "largest over mean load",
         "Requests running or waiting at the fullest ready replica, over the mean of all ready "
         "ones, "
         "both summed over the samples; undefined for several pools together."),
    HOUR(INT64, kv_blocks_max, "kv_blocks_max", "1", "most KV blocks in use",
         "The largest sample of KV blocks in use at the fullest replica."),
    HOUR(DOUBLE, gpus_provisioning_mean, "gpus_provisioning_mean", "1", "GPUs provisioning",
         "Exact time average of GPUs of replicas that are being provisioned."),
    HOUR(DOUBLE, gpus_loading_mean, "gpus_loading_mean", "1", "GPUs loading",
         "The same, loading weights, starting the engine or warming up."),
    HOUR(DOUBLE, gpus_serving_mean, "gpus_serving_mean", "1", "GPUs serving",
         "The same, running an iteration."),
    HOUR(DOUBLE, gpus_idle_mean, "gpus_idle_mean", "1", "GPUs idle", "The same, ready and idle."),
    HOUR(DOUBLE, gpus_draining_mean, "gpus_draining_mean", "1", "GPUs draining",
         "The same, draining before release."),
    HOUR(DOUBLE, gpus_ready_mean, "gpus_ready_mean", "1", "GPUs ready", "serving + idle."),
    HOUR(DOUBLE, gpus_held_mean, "gpus_held_mean", "1", "GPUs held", "All five states."),
    HOUR(UINT64, replicas_held_max, "replicas_held_max", "1", "most replicas held",
         "Largest number of replicas held at once in the interval."),
    HOUR(UINT64, replicas_ready_max, "replicas_ready_max", "1", "most replicas ready",
         "Largest number of replicas ready at once in the interval."),
    GPU_HOURS(HOUR, ", in the interval"),
    HOUR(
        DOUBLE, utilization, "utilization", "1", "utilisation",
        "Work at full utilisation of the iterations (rate: decodes / decode_rate + prefill tokens "
        "/ prefill_rate; other step-time models: busy time), split at the interval's edges by "
        "time, / time ready or draining (a draining replica works, too); GPU-weighted over pools."),
    HOUR(DOUBLE, busy_share, "busy_share", "1", "busy share", "Serving time / ready time."),
    HOUR(UINT64, iterations, "iterations", "1", "engine iterations",
         "Iterations that ended in the interval."),
    HOUR(DOUBLE, batch_mean, "batch_mean", "1", "mean batch", "Sequences per iteration."),
    USD(HOUR, ", in the interval."),
    HOUR(
        DOUBLE, expected_rate, "expected_rate", "s-1", "expected arrival rate",
        "Rate of the arrival process at the interval's start (a trace: its arrivals in that hour / "
        "3,600 s)."),
    HOUR(DOUBLE, need_gpus, "need_gpus", "1", "GPUs needed",
         "GPUs of ceil(expected rate / (capacity × target utilisation)) replicas, for the hour the "
         "interval begins in; undefined when the capacity is not known."),
    {0},
};

const struct column metrics_scaling_columns[] = {
    SCALE(TIME, time_ps, "time", "seconds since start", "time of the decision",
          "When the autoscaler decided."),
    SCALE(TEXT, pool, "pool_name", "1", "pool", "Name of the pool."),
    SCALE(UINT32, pool_index, "pool_index", "1", "pool index", "Index in fleet.pools, from 0."),
    SCALE(UINT32, ready, "ready", "1", "replicas ready", "Before the decision is carried out."),
    SCALE(UINT32, starting, "starting", "1", "replicas starting", "Before the decision."),
    SCALE(UINT32, draining, "draining", "1", "replicas draining", "Before the decision."),
    SCALE(UINT32, wished, "wished", "1", "replicas wished",
          "What the policy wanted, before limits."),
    SCALE(UINT32, target, "target", "1", "replicas decided", "Ready plus starting afterwards."),
    SCALE(DOUBLE, metric, "metric", "1", "signal", "The signal the policy saw, in its own unit."),
    SCALE(TEXT, reason, "reason", "1", "reason", "Why."),
    {0},
};

const struct column metrics_summary_columns[] = {
    SUM(UINT64, requests.arrived, "arrived", "1", "requests arrived",
        "Counted requests: arrival in [warmup, horizon). Equals completed + refused + unservable + "
        "cancelled + in_flight."),
    SUM(UINT64, requests.admitted, "admitted", "1", "requests admitted",
        "Counted requests of which any token was computed."),
    SUM(UINT64, requests.completed, "completed", "1", "requests completed",
        "Counted requests that emitted their last token."),
    SUM(UINT64, requests.refused, "refused", "1", "requests refused",
        "Turned away because a queue was full or no pool could take them."),
    SUM(UINT64, requests.unservable, "unservable", "1", "requests unservable",
        "Could never fit in KV memory or in max_model_len."),
    SUM(UINT64, requests.cancelled, "cancelled", "1", "requests cancelled",
        "The client left before the end."),
    SUM(UINT64, requests.in_flight, "in_flight", "1", "requests in flight at the cut",
        "Unfinished when the run was cut; 0 with a drain."),
    SUM(UINT64, requests.zero_output, "zero_output", "1", "requests without outputs",
        "Completed without any output token; also in completed."),
    SUM(UINT64, requests.preemptions, "preemptions", "1", "preemptions",
        "Times a counted request lost its KV blocks."),
    SUM(UINT64, tokens.prompt, "tokens_prompt", "1", "prompt tokens",
        "Of admitted counted requests: cached + computed once all are prefilled."),
    SUM(UINT64, tokens.cached, "tokens_cached", "1", "prompt tokens found in the prefix cache",
        "Of tokens_prompt; never computed by the request."),
    SUM(UINT64, tokens.computed, "tokens_computed", "1", "prompt tokens computed",
        "For the first time."),
    SUM(UINT64, tokens.recomputed, "tokens_recomputed", "1", "tokens recomputed",
        "Computed again after preemptions, prompt and outputs."),
    SUM(UINT64, tokens.output, "tokens_output", "1", "output tokens",
        "Emitted by counted requests."),
    SUM(UINT64, tokens.prefill_executed, "tokens_prefill_executed", "1", "tokens prefilled",
        "In iterations after warmup, the drain's included, all requests."),
    SUM(UINT64, tokens.decode_executed, "tokens_decode_executed", "1", "tokens decoded",
        "In iterations after warmup, the drain's included, all requests."),
    PREFIX(SUM),
    LATENCIES(SUM),
    SLO(SUM),
    SUM(INT32, slo_met, "slo_met", "1", "SLO met",
        "1 if in every class with a stated share the attainment is at least that share, else 0; "
        "undefined when no class states one, and for single pools."),
    SUM(INT64, kv_peak_blocks, "kv_peak_blocks", "1", "peak KV blocks",
        "Most KV blocks in use at one replica at any instant, cached but unreferenced ones "
        "excluded."),
    SUM(DOUBLE, in_flight_mean, "in_flight_mean", "1", "requests in flight",
        "Exact time average over [warmup, horizon)."),
    SUM(DOUBLE, in_flight_per_ready_gpu, "in_flight_per_ready_gpu", "1",
        "requests in flight per ready GPU", "Over [warmup, horizon)."),
    SUM(DOUBLE, load_max_over_mean, "load_max_over_mean", "1", "largest over mean load",
        "Requests running or waiting at the fullest ready replica, over the mean of all ready "
        "ones, "
        "both summed over the samples of [warmup, horizon); undefined for several pools together."),
    SUM(UINT64, replicas_held_max, "replicas_held_max", "1", "most replicas held",
        "At once, in [warmup, horizon)."),
    SUM(UINT64, replicas_ready_max, "replicas_ready_max", "1", "most replicas ready",
        "At once, in [warmup, horizon)."),
    GPU_HOURS(SUM, ", in [warmup, horizon)"),
    SUM(DOUBLE, gpu_hours_floor, "gpu_hours_floor", "h", "GPU hours: floor",
        "The work itself at full utilisation: ∫λ / capacity."),
    SUM(DOUBLE, gpu_hours_ideal, "gpu_hours_ideal", "h", "GPU hours: ideal",
        "Sum over hours of the need on the hour."),
    SUM(DOUBLE, gpu_hours_peak, "gpu_hours_peak", "h", "GPU hours: peak",
        "The largest need × the hours."),
    SUM(DOUBLE, utilization, "utilization", "1", "utilisation",
        "Work at full utilisation (rate; other step-time models: busy time) / time ready or "
        "draining, over [warmup, horizon)."),
    SUM(DOUBLE, busy_share, "busy_share", "1", "busy share",
        "Serving time / ready time, over [warmup, horizon)."),
    SUM(UINT64, iterations, "iterations", "1", "engine iterations",
        "After warmup, the drain's included."),
    SUM(DOUBLE, batch_mean, "batch_mean", "1", "mean batch", "Sequences per iteration."),
    USD(SUM, ": the sum of the intervals'."),
    SUM(DOUBLE, usd_ideal, "usd_ideal", "$", "cost of the ideal", "gpu_hours_ideal × price."),
    SUM(DOUBLE, usd_peak, "usd_peak", "$", "cost of the peak", "gpu_hours_peak × price."),
    SUM(DOUBLE, split.work, "usd_work", "$", "cost of work",
        "Of usd: utilization × the time ready or draining. usd_work + usd_headroom + "
        "usd_cold_start + usd_drain + usd_rounding = usd."),
    SUM(DOUBLE, split.headroom, "usd_headroom", "$", "cost of headroom",
        "Of usd: the rest of ready time, idle or not full."),
    SUM(DOUBLE, split.cold_start, "usd_cold_start", "$", "cost of cold starts",
        "Of usd: provisioning and loading."),
    SUM(DOUBLE, split.drain, "usd_drain", "$", "cost of draining",
        "Of usd: the rest of draining time."),
    SUM(DOUBLE, split.rounding, "usd_rounding", "$", "cost of billing's rounding",
        "Of usd: billed beyond held, by increments and minimums."),
    SUM(DOUBLE, split.refused, "usd_refused", "$", "cost of refused work",
        "Not in usd: what requests refused or unservable would have cost as work, at the mean of "
        "those admitted; undefined when none was."),
    SUM(DOUBLE, forecast_error, "forecast_error", "1", "forecast error",
        "Mean absolute error of the autoscaler's own forecasts of arrivals, over their mean; "
        "undefined for policies that make none."),
    SUM(INT64, router_decisions, "router_decisions", "1", "decisions on loads that were read",
        "Requests sent by a router whose `signals` have an interval; 0 when it always knows "
        "loads."),
    SUM(INT64, router_stale, "router_stale", "1", "decisions on loads that had changed",
        "Of those, sent to a replica whose load was not what the router thought."),
    {0},
};

const struct column metrics_class_columns[] = {
    CLASS(UINT64, requests.arrived, "arrived", "1", "requests arrived",
          "Counted requests of the class: arrival in [warmup, horizon)."),
    CLASS(UINT64, requests.admitted, "admitted", "1", "requests admitted",
          "Of which any token was computed."),
    CLASS(UINT64, requests.completed, "completed", "1", "requests completed",
          "That emitted their last token."),
    CLASS(UINT64, requests.refused, "refused", "1", "requests refused",
          "Turned away because a queue was full or no pool could take them."),
    CLASS(UINT64, requests.unservable, "unservable", "1", "requests unservable",
          "Could never fit in KV memory or in max_model_len."),
    CLASS(UINT64, requests.cancelled, "cancelled", "1", "requests cancelled",
          "The client left before the end."),
    CLASS(UINT64, requests.in_flight, "in_flight", "1", "requests in flight at the cut",
          "Unfinished when the run was cut."),
    CLASS(UINT64, requests.zero_output, "zero_output", "1", "requests without outputs",
          "Completed without any output token; also in completed."),
    CLASS(UINT64, requests.preemptions, "preemptions", "1", "preemptions",
          "Times a request lost its KV blocks."),
    CLASS(UINT64, tokens.prompt, "tokens_prompt", "1", "prompt tokens",
          "Of admitted requests: cached + computed once all are prefilled."),
    CLASS(UINT64, tokens.cached, "tokens_cached", "1", "prompt tokens found in the prefix cache",
          "Of tokens_prompt; never computed by the request."),
    CLASS(UINT64, tokens.computed, "tokens_computed", "1", "prompt tokens computed",
          "For the first time."),
    CLASS(UINT64, tokens.recomputed, "tokens_recomputed", "1", "tokens recomputed",
          "Computed again after preemptions, prompt and outputs."),
    CLASS(UINT64, tokens.output, "tokens_output", "1", "output tokens", "Emitted."),
    PREFIX(CLASS),
    LATENCY(CLASS, ttft, "ttft", "time to first token", TTFT_POPULATION),
    LATENCY(CLASS, tpot, "tpot", "time per output token", TPOT_POPULATION),
    LATENCY(CLASS, e2e, "e2e", "end-to-end time", E2E_POPULATION),
    SLO(CLASS),
    CLASS(TIME, slo_ttft_ps, "slo_ttft", "s", "SLO on time to first token",
          "The limit; undefined where none is stated."),
    CLASS(TIME, slo_tpot_ps, "slo_tpot", "s", "SLO on time per output token", "The limit."),
    CLASS(TIME, slo_e2e_ps, "slo_e2e", "s", "SLO on end-to-end time", "The limit."),
    CLASS(DOUBLE, slo_attainment, "slo_attainment_wanted", "1", "share that must attain",
          "The stated share."),
    CLASS(INT32, slo_met, "slo_met", "1", "SLO met",
          "1 if slo_attainment ≥ the stated share, else 0; undefined where none is stated."),
    CLASS(DOUBLE, usd, "usd", "$", "cost",
          "The class's share of the bill: of each pool's usd_input by the tokens it had prefilled, "
          "of usd_output by its outputs, all of the run together: who comes at dear hours pays no "
          "more for it. What a pool that ran nothing costs is no class's."),
    CLASS(DOUBLE, usd_per_mtok_total, "usd_per_mtok_total", "$ per million tokens",
          "cost per million tokens", "usd / (tokens_prompt + tokens_output) × 10⁶."),
    {0},
};

const struct column metrics_class_hour_columns[] = {
    CLASS_HOUR(TIME, covered_ps, "covered", "s", "time covered",
               "The part of the interval after warmup."),
    CLASS_HOUR(UINT64, arrived, "arrived", "1", "requests arrived",
               "Counted requests of the class that arrived in the interval."),
    CLASS_HOUR(UINT64, admitted, "admitted", "1", "requests admitted",
               "Whose first step began in the interval."),
    CLASS_HOUR(UINT64, completed, "completed", "1", "requests completed",
               "That emitted their last token in the interval."),
    CLASS_HOUR(UINT64, prompt_tokens, "tokens_prompt", "1", "prompt tokens",
               "Of requests admitted in the interval."),
    CLASS_HOUR(UINT64, cached_tokens, "tokens_cached", "1",
               "prompt tokens found in the prefix cache",
               "Found by admissions in the interval; never computed by the request."),
    PREFIX(CLASS_HOUR),
    SLO(CLASS_HOUR),
    {0},
};

const struct column metrics_request_columns[] = {
    RECORD(UINT64, request.id, "id", "1", "request", "Number in order of arrival, from 0."),
    RECORD(UINT32, request.class_index, "class_index", "1", "class index",
           "Index in workload, from 0."),
    RECORD(INT64, request.session, "session", "1", "session", "-1: none."),
    RECORD(UINT32, request.turn, "turn", "1", "turn", "Within the session, from 0."),
    RECORD(TIME, request.arrival_ps, "arrival_s", "s", "arrival", "Since the scenario's start."),
    RECORD(TIME, admitted_ps, "admitted_s", "s", "admission",
           "Start of the first step that computed any of it."),
    RECORD(TIME, first_token_ps, "first_token_s", "s", "first token",
           "End of the step that emitted output token 1."),
    RECORD(TIME, end_ps, "end_s", "s", "end",
           "Last token, refusal, cancellation, or the cut of the run."),
    RECORD(UINT32, request.prompt_tokens, "prompt_tokens", "1", "prompt tokens", "Asked for."),
    RECORD(UINT32, request.output_tokens, "output_tokens", "1", "output tokens", "Asked for."),
    RECORD(UINT32, emitted_tokens, "emitted_tokens", "1", "output tokens emitted",
           "= output_tokens when completed."),
    RECORD(UINT32, cached_tokens, "cached_tokens", "1", "prompt tokens found in the prefix cache",
           "At first admission, or after a preemption beyond all it had stored: never computed."),
    RECORD(UINT32, computed_tokens, "computed_tokens", "1", "prompt tokens computed",
           "For the first time."),
    RECORD(UINT32, recomputed_tokens, "recomputed_tokens", "1", "tokens recomputed",
           "Computed again after preemptions, prompt and outputs."),
    RECORD(UINT32, preemptions, "preemptions", "1", "preemptions", "Times it lost its KV blocks."),
    RECORD(INT32, pool, "pool_index", "1", "pool index", "Index in fleet.pools; -1: none."),
    RECORD(INT32, replica, "replica", "1", "replica",
           "Launch number in its pool, from 0; -1: none."),
    RECORD(UINT32, outcome, "outcome", "1", "outcome",
           "0 completed, 1 refused, 2 unservable, 3 cancelled, 4 in flight when cut."),
    {0},
};
