#include "sim/cli/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/cli/transient.h"
#include "sim/trace/trace.h"

static void requests_json(struct json *j, const struct metrics_requests *r)
{
    json_out_object(j, "requests");
    json_out_count(j, "arrived", r->arrived);
    json_out_count(j, "completed", r->completed);
    json_out_count(j, "refused", r->refused);
    json_out_count(j, "unservable", r->unservable);
    json_out_count(j, "cancelled", r->cancelled);
    json_out_count(j, "in_flight", r->in_flight);
    json_out_object_end(j);
}

/* Null where there are no sessions. */
static void sessions_json(struct json *j, const struct sessions_counts *s)
{
    if (s->started == 0) {
        json_out_text(j, "sessions", NULL);
        return;
    }
    json_out_object(j, "sessions");
    json_out_count(j, "started", s->started);
    json_out_count(j, "finished", s->finished);
    json_out_count(j, "given_up", s->given_up);
    json_out_count(j, "past_horizon", s->past_horizon);
    json_out_count(j, "cut", s->cut);
    json_out_object_end(j);
}

static void tokens_json(struct json *j, const struct metrics_tokens *t)
{
    json_out_object(j, "tokens");
    json_out_count(j, "prompt", t->prompt);
    json_out_count(j, "cached", t->cached);
    json_out_count(j, "computed", t->computed);
    json_out_count(j, "recomputed", t->recomputed);
    json_out_count(j, "output", t->output);
    json_out_object_end(j);
}

static void latency_json(struct json *j, const char *key, const struct metrics_latency *l)
{
    json_out_object(j, key);
    json_out_count(j, "count", l->count);
    json_out_time(j, "mean", l->mean_ps);
    json_out_time(j, "p50", l->p50_ps);
    json_out_time(j, "p90", l->p90_ps);
    json_out_time(j, "p95", l->p95_ps);
    json_out_time(j, "p99", l->p99_ps);
    json_out_time(j, "max", l->max_ps);
    json_out_object_end(j);
}

static void latencies_json(struct json *j, const struct metrics_summary *s)
{
    json_out_object(j, "latency");
    latency_json(j, "ttft_s", &s->ttft);
    latency_json(j, "tpot_s", &s->tpot);
    latency_json(j, "itl_s", &s->itl);
    latency_json(j, "e2e_s", &s->e2e);
    latency_json(j, "queue_s", &s->queue);
    json_out_object_end(j);
}

static void slo_json(struct json *j, const struct metrics_slo *slo)
{
    json_out_object(j, "slo");
    json_out_count(j, "attained", slo->attained);
    json_out_count(j, "missed", slo->missed);
    json_out_count(j, "undecided", slo->undecided);
    json_out_real(j, "attainment", slo->attainment);
    json_out_real(j, "attainment_upper", slo->attainment_upper);
    json_out_real(j, "goodput_per_s", slo->goodput);
    json_out_object_end(j);
}

static void gpu_hours_json(struct json *j, const struct metrics_summary *s)
{
    json_out_object(j, "gpu_hours");
    json_out_real(j, "billed", s->gpu_hours.billed);
    json_out_real(j, "held", s->gpu_hours.held);
    json_out_real(j, "starting", s->gpu_hours.starting);
    json_out_real(j, "ready", s->gpu_hours.ready);
    json_out_real(j, "draining", s->gpu_hours.draining);
    json_out_real(j, "idle", s->gpu_hours.idle);
    json_out_real(j, "floor", s->gpu_hours_floor);
    json_out_real(j, "ideal", s->gpu_hours_ideal);
    json_out_real(j, "peak", s->gpu_hours_peak);
    json_out_object_end(j);
}

static void cost_json(struct json *j, const struct metrics_summary *s)
{
    json_out_object(j, "cost");
    json_out_real(j, "usd", s->usd.total);
    json_out_real(j, "usd_low", s->usd.low);
    json_out_real(j, "usd_high", s->usd.high);
    json_out_real(j, "usd_ideal", s->usd_ideal);
    json_out_real(j, "usd_peak", s->usd_peak);
    json_out_real(j, "usd_per_mtok_total", s->usd.per_mtok_total);
    json_out_real(j, "usd_per_mtok_input", s->usd.per_mtok_input);
    json_out_real(j, "usd_per_mtok_output", s->usd.per_mtok_output);
    json_out_object_end(j);
}

static void cost_split_json(struct json *j, const struct metrics_summary *s)
{
    json_out_object(j, "cost_split");
    json_out_real(j, "work", s->split.work);
    json_out_real(j, "headroom", s->split.headroom);
    json_out_real(j, "cold_start", s->split.cold_start);
    json_out_real(j, "drain", s->split.drain);
    json_out_real(j, "rounding", s->split.rounding);
    json_out_real(j, "refused", s->split.refused);
    json_out_object_end(j);
}

static void scaling_json(struct json *j, const struct run_outcome *o)
{
    json_out_object(j, "scaling");
    json_out_count(j, "events", o->scale_events);
    json_out_real(j, "forecast_error", o->summaries[0].forecast_error);
    json_out_object_end(j);
}

static void prefix_json(struct json *j, const struct metrics_prefix *p)
{
    json_out_object(j, "prefix");
    json_out_count(j, "lookup_tokens", p->lookup_tokens);
    json_out_count(j, "hit_tokens", p->hit_tokens);
    json_out_real(j, "token_hit_rate", p->token_hit_rate);
    json_out_count(j, "lookup_blocks", p->lookup_blocks);
    json_out_count(j, "hit_blocks", p->hit_blocks);
    json_out_real(j, "block_hit_rate", p->block_hit_rate);
    json_out_count(j, "rehit_tokens", p->rehit_tokens);
    json_out_object_end(j);
}

static void routing_json(struct json *j, const struct metrics_summary *s)
{
    json_out_object(j, "routing");
    json_out_int(j, "decisions", s->router_decisions);
    json_out_int(j, "stale", s->router_stale);
    json_out_real(j, "load_max_over_mean", s->load_max_over_mean);
    json_out_object_end(j);
}

static void classes_json(struct json *j, const struct run_outcome *o)
{
    json_out_list(j, "classes");
    for (size_t c = 0; c < o->class_count; c++) {
        const struct metrics_class_summary *class = &o->classes[c];
        json_out_object(j, NULL);
        json_out_text(j, "class", class->name);
        requests_json(j, &class->requests);
        tokens_json(j, &class->tokens);
        prefix_json(j, &class->prefix);
        latency_json(j, "ttft_s", &class->ttft);
        latency_json(j, "tpot_s", &class->tpot);
        latency_json(j, "e2e_s", &class->e2e);
        slo_json(j, &class->slo);
        json_out_real(j, "usd", class->usd);
        json_out_real(j, "usd_per_mtok_total", class->usd_per_mtok_total);
        json_out_object_end(j);
    }
    json_out_list_end(j);
}

static void pools_json(struct json *j, const struct run_outcome *o)
{
    json_out_list(j, "pools");
    for (size_t p = 0; p < o->pool_count; p++) {
        const struct run_outcome_pool *pool = &o->pools[p];
        json_out_object(j, NULL);
        json_out_text(j, "pool", pool->name);
        json_out_count(j, "gpus_per_replica", pool->gpus_per_replica);
        json_out_count(j, "initial_replicas", pool->initial_replicas);
        json_out_real(j, "capacity", pool->capacity);
        json_out_count(j, "capacity_trials", pool->capacity_trials);
        json_out_real(j, "target_utilization", pool->target_utilization);
        json_out_object_end(j);
    }
    json_out_list_end(j);
}

static void run_json(struct json *j, const struct run_totals *t)
{
    json_out_object(j, "run");
    json_out_real(j, "wall_s", t->wall_s);
    json_out_count(j, "events", t->events);
    json_out_count(j, "spans", t->spans);
    json_out_count(j, "iterations", t->iterations);
    json_out_real(j, "requests_per_s", t->requests_per_s);
    json_out_count(j, "peak_rss_bytes", t->peak_rss_bytes);
    json_out_real(j, "measuring_s", t->measuring_s);
    json_out_object_end(j);
}

static void transient_json(struct json *j, const struct run_outcome *o)
{
    static const char *const states[] = {[TRANSIENT_NOT_ASKED] = NULL,
                                         [TRANSIENT_TOO_SHORT] = "too_short",
                                         [TRANSIENT_NONE] = "none",
                                         [TRANSIENT_FOUND] = "found",
                                         [TRANSIENT_UNSETTLED] = "unsettled"};
    struct transient t = transient_find(o);
    bool seen = t.state == TRANSIENT_FOUND || t.state == TRANSIENT_UNSETTLED;
    const char *series = t.series == TRANSIENT_TTFT ? "ttft_mean" : "in_flight_mean";
    json_out_object(j, "transient");
    json_out_text(j, "state", states[t.state]);
    json_out_text(j, "series", seen ? series : NULL);
    json_out_time(j, "warmup_s", t.end_ps);
    json_out_object_end(j);
}

void result_members_json(struct json *j, const struct run_outcome *o)
{
    const struct metrics_summary *s = o->summaries;
    json_out_text(j, "scenario", o->name);
    json_out_int(j, "seed", o->seed);
    json_out_text(j, "digest", o->digest);
    requests_json(j, &s->requests);
    sessions_json(j, &o->sessions);
    tokens_json(j, &s->tokens);
    latencies_json(j, s);
    slo_json(j, &s->slo);
    json_out_object(j, "kv");
    json_out_int(j, "peak_blocks", s->kv_peak_blocks);
    json_out_count(j, "preemptions", s->requests.preemptions);
    json_out_object_end(j);
    prefix_json(j, &s->prefix);
    routing_json(j, s);
    gpu_hours_json(j, s);
    cost_json(j, s);
    cost_split_json(j, s);
    classes_json(j, o);
    pools_json(j, o);
    scaling_json(j, o);
    transient_json(j, o);
    json_out_object(j, "audit");
    json_out_bool(j, "ok", o->audit_ok);
    json_out_count(j, "checks", o->check_count);
    json_out_object_end(j);
    if (o->totals)
        run_json(j, o->totals);
}

void result_json(struct json *j, const char *key, const struct run_outcome *o)
{
    json_out_object(j, key);
    result_members_json(j, o);
    json_out_object_end(j);
}

static void hour_print(const struct metrics_hour *row, FILE *out)
{
    const struct column *tables[] = {metrics_hour_key_columns, metrics_hour_columns};
    bool first = true;
    for (size_t t = 0; t < 2; t++) {
        for (const struct column *c = tables[t]; c->type != COLUMN_END; c++) {
            fputs(first ? "" : ",", out);
            column_csv_value(c, row, out);
            first = false;
        }
    }
    fputc('\n', out);
}

static void hours_print(const struct run *run, FILE *out)
{
    const struct column *tables[] = {metrics_hour_key_columns, metrics_hour_columns};
    bool first = true;
    for (size_t t = 0; t < 2; t++) {
        for (const struct column *c = tables[t]; c->type != COLUMN_END; c++) {
            fprintf(out, "%s%s", first ? "" : ",", c->name);
            first = false;
        }
    }
    fputc('\n', out);
    const struct metrics *m = run_metrics(run);
    size_t pools = run_config(run)->fleet.pools.count;
    for (size_t k = 0; k < metrics_hour_count(m); k++) {
        hour_print(metrics_hours_all(m) + k, out);
        for (size_t p = 0; p < pools; p++)
            hour_print(metrics_hours(m) + k * pools + p, out);
    }
}

bool result_hourly_write(const struct run *run, const char *path, struct errors *errors)
{
    size_t size = strlen(path) + 32;
    char *temporary = memory_alloc(size);
    bool device = trace_target_is_device(path);
    if (device)
        snprintf(temporary, size, "%s", path);
    else
        snprintf(temporary, size, "%s.tmp-%ld", path, (long)getpid());
    FILE *out = fopen(temporary, "w");
    bool ok = out != NULL;
    if (ok) {
        hours_print(run, out);
        ok = !ferror(out);
        ok = fclose(out) == 0 && ok;
        ok = ok && (device || rename(temporary, path) == 0);
    }
    if (!ok) {
        errors_add(errors, SEVERITY_ERROR, NULL, "cannot write %s: %s", path, strerror(errno));
        if (!device)
            unlink(temporary);
    }
    free(temporary);
    return ok;
}
