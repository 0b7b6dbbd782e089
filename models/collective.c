#include "models/collective.h"

#include "sim/base/time.h"

const char *const collective_all_reduce_names[ALL_REDUCE_COUNT] = {
    "none", "one-shot", "two-shot", "ring", "NVLS", "hierarchical"};
const char *const collective_dedup_names[DEDUP_COUNT + 1] = {"none", "gpu", "node", NULL};

/* The shape behind every row of a gpu's exchange table. */
enum { TABLE_TOP_K = 8, TABLE_WIDTH = 7168 };

/* FP8 elements travel with one FP32 scale per 128; results come back in BF16. */
static const double fp8_element = 1 + 4.0 / 128, bf16_element = 2;

/* DeepEP's low-latency kernels on H100 over 400 Gb/s ports at 2, 4 and 8 nodes (the 8-token row of
 * the measured table); the last holds beyond. */
static const struct {
    int64_t nodes;
    double dispatch_s, combine_s;
} network_latencies[] = {{2, 24e-6, 36e-6}, {4, 32e-6, 42e-6}, {INT64_MAX, 35e-6, 43e-6}};

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- all-reduce ----------------------------------------------------------------------------- */

/* latencies: how often the latency is paid; share: bytes sent over the link per byte reduced. */
static void consider(struct all_reduce_plan *plan, const struct link_cost *cost, double latencies,
                     double share, double rate, enum all_reduce algorithm)
{
    if (cost->latency_ps < 0)
        return;
    plan->latency_s[plan->count] = latencies * time_seconds(cost->latency_ps);
    plan->byte_s[plan->count] = share / (cost->efficiency * rate);
    plan->algorithms[plan->count++] = algorithm;
}

struct all_reduce_plan collective_all_reduce_plan(const struct gpu_spec *gpu, int64_t ranks)
{
    struct all_reduce_plan plan = {0};
    if (ranks <= 1)
        return plan;
    const struct gpu_collectives *c = &gpu->collectives;
    int64_t inside = ranks < gpu->domain ? ranks : gpu->domain;
    double n = (double)inside, rate = gpu->link_bytes_per_s, halves = 2 * (n - 1) / n;
    if (inside > 1) {
        consider(&plan, &c->one_shot, 1, n - 1, rate, ALL_REDUCE_ONE_SHOT);
        consider(&plan, &c->two_shot, 1, halves, rate, ALL_REDUCE_TWO_SHOT);
        consider(&plan, &c->ring, 2 * (n - 1), halves, rate, ALL_REDUCE_RING);
        consider(&plan, &c->nvls, 1, 1, rate, ALL_REDUCE_NVLS);
    }
    if (ranks > inside) {
        double nodes = (double)((ranks + inside - 1) / inside);
        plan.network = true;
        plan.network_latency_s = 2 * (nodes - 1) * time_seconds(c->network_latency_ps);
        plan.network_byte_s = 2 * (nodes - 1) / nodes / n / gpu->nic_bytes_per_s;
    }
    return plan;
}

double collective_all_reduce_plan_s(const struct all_reduce_plan *plan, double bytes,
                                    enum all_reduce *algorithm)
{
    double best = 0;
    enum all_reduce chosen = ALL_REDUCE_NONE;
    for (size_t i = 0; i < plan->count; i++) {
        double seconds = plan->latency_s[i] + plan->byte_s[i] * bytes;
        if (i == 0 || seconds < best) {
            best = seconds;
            chosen = plan->algorithms[i];
        }
    }
    if (plan->network) {
        best += plan->network_latency_s + plan->network_byte_s * bytes;
        chosen = ALL_REDUCE_HIERARCHICAL;
    }
    if (algorithm)
        *algorithm = chosen;
    return best;
}

double collective_all_reduce_s(const struct gpu_spec *gpu, int64_t ranks, double bytes,
                               enum all_reduce *algorithm)
{
    struct all_reduce_plan plan = collective_all_reduce_plan(gpu, ranks);
    return collective_all_reduce_plan_s(&plan, bytes, algorithm);
}

double collective_hop_s(const struct gpu_spec *gpu, int64_t stage_gpus, double bytes, bool network)
{
    double rate = network ? gpu->nic_bytes_per_s : gpu->link_bytes_per_s;
    double latency = network ? time_seconds(gpu->collectives.network_latency_ps)
                             : time_seconds(gpu->collectives.one_shot.latency_ps);
    return latency + bytes / (rate * (double)stage_gpus);
}

/* ---- expert all-to-all ---------------------------------------------------------------------- */

double collective_distinct_groups(double experts, double k, double groups)
{
    double outside = experts - experts / groups, missed = 1;
    for (double i = 0; i < k; i++)
        missed *= outside - i > 0 ? (outside - i) / (experts - i) : 0;
    return groups * (1 - missed);
}

struct exchange_shape collective_exchange_shape(int64_t ranks)
{
    return (struct exchange_shape){.ranks = ranks,
                                   .dispatch_element = fp8_element,
                                   .combine_element = bf16_element,
                                   .dedup = DEDUP_NODE,
                                   .measured = true};
}

/* The column with the nearest number of ranks (by ratio); 0 when the table is empty. */
static int64_t table_column(const struct gpu_spec *gpu, int64_t ranks)
{
    int64_t best = 0;
    double best_ratio = 0;
    for (size_t i = 0; i < gpu->exchange.count; i++) {
        int64_t r = ((const struct exchange_point *)gpu->exchange.items)[i].ranks;
        double ratio = r < ranks ? (double)ranks / (double)r : (double)r / (double)ranks;
        if (best == 0 || ratio < best_ratio) {
            best = r;
            best_ratio = ratio;
        }
    }
    return best;
}

struct exchange collective_exchange(const struct gpu_spec *gpu, const struct llm_spec *llm,
                                    const struct exchange_shape *shape)
{
    const struct moe_shape *moe = &llm->moe;
    double ranks = (double)shape->ranks, k = (double)moe->top_k, experts = (double)moe->experts;
    double inside = (double)(shape->ranks < gpu->domain ? shape->ranks : gpu->domain);
    double nodes = ranks / inside;
    double width = (double)(moe->latent ? moe->latent : llm->hidden);
    struct exchange x = {.gpu = gpu,
                         .ranks = shape->ranks,
                         .dispatch_bytes = width * shape->dispatch_element,
                         .combine_bytes = width * shape->combine_element};
    double copies = k;
    if (shape->dedup != DEDUP_NONE)
        copies = smaller(k, collective_distinct_groups(experts, k, ranks));
    x.link_copies = copies * (inside - 1) / ranks;
    x.network_copies = copies * (ranks - inside) / ranks;
    if (shape->dedup == DEDUP_NODE && nodes > 1) {
        double reached = collective_distinct_groups(experts, k, nodes);
        if (moe->groups > 1)
            reached = smaller(reached, (double)moe->top_groups);
        x.network_copies = reached * (nodes - 1) / nodes;
        x.link_copies = copies * (inside - 1) / inside; /* forwarded ones too */
    }
    size_t row = 0;
    while ((double)network_latencies[row].nodes < nodes)
        row++;
    x.network_dispatch_latency_s = network_latencies[row].dispatch_s;
    x.network_combine_latency_s = network_latencies[row].combine_s;
    if (shape->measured && shape->ranks > 1)
        x.table_ranks = table_column(gpu, shape->ranks);
    x.table_scale = k * width * (shape->dispatch_element + shape->combine_element) /
                    (TABLE_TOP_K * TABLE_WIDTH * (fp8_element + bf16_element));
    return x;
}

/* Linear through two rows of the table. */
static double through(double tokens, double x0, int64_t y0_ps, double x1, int64_t y1_ps)
{
    double y0 = time_seconds(y0_ps), y1 = time_seconds(y1_ps);
    return larger(y0 + (y1 - y0) * (tokens - x0) / (x1 - x0), 0);
}

/* The table's answer at `tokens` (already scaled); false when there is no column. A single row is
 * taken as the network latency plus a transfer in proportion. */
static bool table_time(const struct exchange *x, double tokens, struct exchange_time *time)
{
    const struct exchange_point *points = x->gpu->exchange.items;
    const struct exchange_point *low = NULL, *high = NULL, *before = NULL;
    for (size_t i = 0; x->table_ranks && i < x->gpu->exchange.count; i++) {
        const struct exchange_point *p = &points[i];
        if (p->ranks != x->table_ranks || p->tokens == x->table_skip)
            continue;
        if (p->tokens <= tokens || !low) {
            before = low;
            low = p;
        } else if (!high) {
            high = p;
        }
    }
    if (!low)
        return false;
    if (!high) { /* beyond the last row: along its last slope */
        high = low;
        low = before;
    }
    if (!low) {
        double part = tokens / high->tokens, out = time_seconds(high->dispatch_ps);
        double back = time_seconds(high->combine_ps);
        double floor_out = smaller(x->network_dispatch_latency_s, out);
        double floor_back = smaller(x->network_combine_latency_s, back);
        *time = (struct exchange_time){floor_out + part * (out - floor_out),
                                       floor_back + part * (back - floor_back)};
        return true;
    }
    if (tokens < low->tokens)
        tokens = low->tokens;
    time->dispatch_s =
        through(tokens, low->tokens, low->dispatch_ps, high->tokens, high->dispatch_ps);
    time->combine_s = through(tokens, low->tokens, low->combine_ps, high->tokens, high->combine_ps);
    return true;
}

struct exchange_bytes collective_exchange_bytes(const struct exchange *x, double tokens)
{
    double bytes = tokens * (x->dispatch_bytes + x->combine_bytes);
    return (struct exchange_bytes){bytes * x->link_copies, bytes * x->network_copies};
}

/* One way of the bandwidth kernel. */
static double transfer_s(const struct exchange *x, const struct link_cost *link, double bytes,
                         double network_latency_s)
{
    double rate = link->efficiency * x->gpu->link_bytes_per_s;
    double latency = x->network_copies > 0 ? network_latency_s : time_seconds(link->latency_ps);
    return latency + larger(bytes * x->link_copies / rate,
                            bytes * x->network_copies / x->gpu->nic_bytes_per_s);
}

/* Tokens of the last row of the table's column, left out or not; 0 without one. */
static double table_end(const struct exchange *x)
{
    const struct exchange_point *points = x->gpu->exchange.items;
    double end = 0;
    for (size_t i = 0; x->table_ranks && i < x->gpu->exchange.count; i++)
        if (points[i].ranks == x->table_ranks)
            end = larger(end, points[i].tokens);
    return end;
}

struct exchange_time collective_exchange_s(const struct exchange *x, double tokens)
{
    if (x->ranks <= 1)
        return (struct exchange_time){0, 0};
    const struct gpu_collectives *c = &x->gpu->collectives;
    struct exchange_time time = {
        transfer_s(x, &c->dispatch, tokens * x->dispatch_bytes, x->network_dispatch_latency_s),
        transfer_s(x, &c->combine, tokens * x->combine_bytes, x->network_combine_latency_s)};
    struct exchange_time table;
    double rows = tokens * x->table_scale, end = table_end(x);
    if (!table_time(x, rows, &table))
        return time;
    if (rows <= end)
        return table;
    /* Beyond the measured sizes the faster kernel, but more tokens never take less time. */
    struct exchange_time last = table;
    (void)table_time(x, end, &last); /* as the one before, it is there */
    time.dispatch_s = larger(last.dispatch_s, smaller(table.dispatch_s, time.dispatch_s));
    time.combine_s = larger(last.combine_s, smaller(table.combine_s, time.combine_s));
    return time;
}

double collective_moe_bytes(const struct llm_spec *llm, double dispatch_element,
                            double combine_element)
{
    double width = (double)(llm->moe.latent ? llm->moe.latent : llm->hidden);
    return (double)llm->moe.top_k * width * (dispatch_element + combine_element);
}

double collective_exchange_crossover(const struct exchange *x)
{
    const struct link_cost *link = &x->gpu->collectives.dispatch;
    if (x->network_copies > 0)
        return x->network_dispatch_latency_s * x->gpu->nic_bytes_per_s;
    return time_seconds(link->latency_ps) * link->efficiency * x->gpu->link_bytes_per_s;
}
