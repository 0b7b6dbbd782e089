/* The step model `table`: measured iteration times. Decode times over (batch, mean context) and
 * prefill times over chunk tokens, linear between points; beyond them an error unless extrapolation
 * is asked for, which then goes on along the last slope.
 *
 *     step = decode(decodes, mean context) + prefill(prompt tokens)
 *
 * For the engine's law decode must be affine in the stored tokens at a given batch: each batch's
 * points are contexts, and between two contexts time is a line in the stored tokens. */
#include "models/step_table.h"

#include <math.h>
#include <string.h>

#include "models/piece.h"

enum { TABLE_POINTS_MAX = 100000 };

struct table_decode_point {
    int64_t batch;
    int64_t context; /* mean stored tokens per sequence */
    int64_t step_ps;
};

struct table_prefill_point {
    int64_t tokens;
    int64_t step_ps;
};

struct table_config {
    struct field_list decode;
    struct field_list prefill;
    bool extrapolate;
};

static const struct field decode_fields[] = {
    {.name = "batch",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .min = 1,
     .max = 1e6,
     .offset = offsetof(struct table_decode_point, batch),
     .doc = "Sequences decoding"},
    {.name = "context",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .min = 0,
     .max = 1e8,
     .offset = offsetof(struct table_decode_point, context),
     .doc = "Stored tokens per sequence"},
    {.name = "step",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .min = 0,
     .max = 3600,
     .offset = offsetof(struct table_decode_point, step_ps),
     .doc = "Measured time of the iteration"},
    {0}};
static const struct field decode_item = {
    .name = "point", .kind = FIELD_STRUCT, .fields = decode_fields, .doc = "One measurement"};

static const struct field prefill_fields[] = {
    {.name = "tokens",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .min = 1,
     .max = 1e8,
     .offset = offsetof(struct table_prefill_point, tokens),
     .doc = "Prompt tokens of the iteration"},
    {.name = "step",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .min = 0,
     .max = 3600,
     .offset = offsetof(struct table_prefill_point, step_ps),
     .doc = "Measured time they take"},
    {0}};
static const struct field prefill_item = {
    .name = "point", .kind = FIELD_STRUCT, .fields = prefill_fields, .doc = "One measurement"};

static const struct field table_fields[] = {
    {.name = "decode",
     .kind = FIELD_LIST,
     .offset = offsetof(struct table_config, decode),
     .item = &decode_item,
     .item_size = sizeof(struct table_decode_point),
     .min = 1,
     .max = TABLE_POINTS_MAX,
     .doc = "Decode iterations, by batch, then context"},
    {.name = "prefill",
     .kind = FIELD_LIST,
     .offset = offsetof(struct table_config, prefill),
     .item = &prefill_item,
     .item_size = sizeof(struct table_prefill_point),
     .min = 1,
     .max = TABLE_POINTS_MAX,
     .doc = "Prompt tokens, rising"},
    {.name = "extrapolate",
     .kind = FIELD_BOOL,
     .fallback = "false",
     .offset = offsetof(struct table_config, extrapolate),
     .doc = "Go on along the last slope beyond the measured points"},
    {0}};

/* One batch's line pieces in the mean context. */
struct table_row {
    int64_t batch;
    const struct table_decode_point *points; /* borrowed from the config */
    size_t count;
};

struct table_model {
    const struct table_config *config;
    struct table_row *rows; /* arena, rising batch */
    size_t row_count;
};

static bool check_order(const struct table_config *c, struct errors *errors,
                        const struct source_pos *where)
{
    const struct table_decode_point *d = c->decode.items;
    const struct table_prefill_point *p = c->prefill.items;
    size_t before = errors->error_count;
    for (size_t i = 1; i < c->decode.count; i++)
        if (d[i].batch < d[i - 1].batch ||
            (d[i].batch == d[i - 1].batch && d[i].context <= d[i - 1].context))
            errors_add(errors, SEVERITY_ERROR, where,
                       "step_time table: decode[%zu] is out of order (by batch, then context)", i);
    for (size_t i = 1; i < c->prefill.count; i++)
        if (p[i].tokens <= p[i - 1].tokens)
            errors_add(errors, SEVERITY_ERROR, where,
                       "step_time table: prefill[%zu] is out of order (by tokens)", i);
    return errors->error_count == before;
}

static void *table_build(const void *config_, struct arena *arena, struct errors *errors,
                         const struct source_pos *where)
{
    const struct table_config *config = config_;
    if (!check_order(config, errors, where))
        return NULL;
    struct table_model *m = arena_alloc(arena, sizeof *m);
    m->config = config;
    m->rows = arena_alloc(arena, config->decode.count * sizeof *m->rows);
    const struct table_decode_point *d = config->decode.items;
    for (size_t i = 0; i < config->decode.count; i++) {
        if (i == 0 || d[i].batch != d[i - 1].batch)
            m->rows[m->row_count++] = (struct table_row){d[i].batch, &d[i], 0};
        m->rows[m->row_count - 1].count++;
    }
    return m;
}

/* A fault of the user that only the run can find: outside the measured range. */
static void outside(const struct table_model *m, const char *what, int64_t value, int64_t low,
                    int64_t high)
{
    check_limit(
        m->config->extrapolate,
        "step_time table: %s of %lld is outside the measured %lld to %lld; add points or set "
        "extrapolate: true",
        what, (long long)value, (long long)low, (long long)high);
}

/* The line of one row at stored tokens `kv` of `decodes` sequences, as a function of the iteration.
 * In whole picoseconds per stored token, so that it is exact under advance. */
static struct piece row_piece(const struct table_model *m, const struct table_row *row,
                              const struct step_batch *b)
{
    int64_t n = b->decodes;
    if (row->count == 1) {
        if (b->decode_kv != row->points[0].context * n)
            outside(m, "mean context", b->decode_kv / n, row->points[0].context,
                    row->points[0].context);
        return piece_constant(row->points[0].step_ps);
    }
    size_t i = 1;
    while (i + 1 < row->count && b->decode_kv >= row->points[i].context * n)
        i++;
    const struct table_decode_point *a = &row->points[i - 1], *z = &row->points[i];
    if (b->decode_kv < a->context * n || b->decode_kv > z->context * n)
        outside(m, "mean context", b->decode_kv / n, row->points[0].context,
                row->points[row->count - 1].context);
    double slope = (double)(z->step_ps - a->step_ps) / (double)((z->context - a->context) * n);
    int64_t per_token = llround(slope);
    struct piece line =
        piece_line(a->step_ps + per_token * (b->decode_kv - a->context * n), per_token * n);
    bool last = i + 1 == row->count;
    /* Iterations that start at or before the far end; on it, the next line takes over. */
    int64_t room = z->context * n - b->decode_kv;
    if (!last || !m->config->extrapolate) {
        int64_t steps = last ? room / n + 1 : (room + n - 1) / n;
        line.valid = steps < 1 ? 1 : steps < (int64_t)UINT32_MAX ? (uint32_t)steps : UINT32_MAX;
    }
    return line;
}

static struct piece decode_piece(const struct table_model *m, const struct step_batch *b)
{
    if (b->decodes == 0)
        return piece_constant(0);
    size_t i = 0, last = m->row_count - 1;
    while (i < last && m->rows[i].batch < (int64_t)b->decodes)
        i++;
    const struct table_row *high = &m->rows[i];
    if (high->batch == (int64_t)b->decodes)
        return row_piece(m, high, b);
    if (b->decodes < m->rows[0].batch || b->decodes > m->rows[last].batch)
        outside(m, "batch", b->decodes, m->rows[0].batch, m->rows[last].batch);
    if (last == 0)
        return row_piece(m, high, b);
    const struct table_row *low = i == 0 ? high : &m->rows[i - 1];
    high = i == 0 ? &m->rows[1] : high;
    /* Between batches: each row's line times its weight, coefficients rounded. */
    double weight = (double)((int64_t)b->decodes - low->batch) / (double)(high->batch - low->batch);
    struct piece a = row_piece(m, low, b), z = row_piece(m, high, b);
    int64_t n = b->decodes, base_kv = b->decode_kv;
    int64_t slope_a = a.slope / n, slope_z = z.slope / n;
    int64_t per_token = llround((1 - weight) * (double)slope_a + weight * (double)slope_z);
    /* The value at zero stored tokens is constant along the span. */
    double zero = (1 - weight) * (double)(a.base - slope_a * base_kv) +
                  weight * (double)(z.base - slope_z * base_kv);
    struct piece mixed = piece_line(llround(zero) + per_token * base_kv, per_token * n);
    mixed.valid = piece_sooner(a.valid, z.valid);
    return mixed;
}

static int64_t prefill_ps(const struct table_model *m, int64_t tokens)
{
    const struct table_prefill_point *p = m->config->prefill.items;
    size_t count = m->config->prefill.count, i = 1;
    if (tokens == 0)
        return 0;
    if (tokens < p[0].tokens || tokens > p[count - 1].tokens)
        outside(m, "prompt chunk", tokens, p[0].tokens, p[count - 1].tokens);
    if (count == 1)
        return p[0].step_ps;
    while (i + 1 < count && p[i].tokens < tokens)
        i++;
    double part = (double)(tokens - p[i - 1].tokens) / (double)(p[i].tokens - p[i - 1].tokens);
    return llround((double)p[i - 1].step_ps + part * (double)(p[i].step_ps - p[i - 1].step_ps));
}

static void table_law(const void *model, const struct step_batch *batch, struct step_law *law)
{
    const struct table_model *m = model;
    struct piece step =
        piece_add(decode_piece(m, batch), piece_constant(prefill_ps(m, batch->prefill_tokens)));
    check_limit(step.base > 0, "step_time table: extrapolated to a step of no time");
    *law = (struct step_law){step.base, step.slope, step.valid};
}

static const struct step_model_type table_type = {.build = table_build, .law = table_law};

const struct variant step_table_variant = {
    .name = "table",
    .doc = "Measured iteration times, linear between points",
    .fields = table_fields,
    .size = sizeof(struct table_config),
    .ops = &table_type,
};
