#include "sim/workload/lengths_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/time.h"
#include "sim/workload/lengths.h"

/* ---- the table ---- */

static const uint64_t WHOLE = UINT64_C(1) << 63;
enum { GUIDE_SHIFT = 53 };

struct lengths_table *lengths_table_create(const int64_t *knots, const double *below, size_t count)
{
    check(count > 0 && below[0] == 0);
    struct lengths_table *table = memory_zero(1, sizeof *table);
    table->count = count;
    table->knots = memory_alloc((count + 1) * sizeof *table->knots);
    table->below = memory_alloc((count + 1) * sizeof *table->below);
    for (size_t i = 0; i <= count; i++) {
        double p = below[i] < 0 ? 0 : below[i];
        table->knots[i] = knots[i];
        table->below[i] = p >= 1 || i == count ? WHOLE : (uint64_t)(p * 0x1p63);
        check(i == 0 || (knots[i] > knots[i - 1] && table->below[i] >= table->below[i - 1]));
    }
    size_t interval = 0;
    for (uint64_t g = 0; g < LENGTHS_TABLE_GUIDES; g++) {
        while (table->below[interval + 1] <= g << GUIDE_SHIFT)
            interval++;
        table->guide[g] = (uint32_t)interval;
    }
    return table;
}

void lengths_table_free(struct lengths_table *table)
{
    if (!table)
        return;
    free(table->knots);
    free(table->below);
    free(table);
}

uint32_t lengths_table_draw(const struct lengths_table *table, uint64_t bits)
{
    uint64_t at = bits >> 1;
    size_t i = table->guide[at >> GUIDE_SHIFT];
    while (table->below[i + 1] <= at)
        i++;
    uint64_t wide = (uint64_t)(table->knots[i + 1] - table->knots[i]);
    uint64_t mass = table->below[i + 1] - table->below[i];
    unsigned __int128 share = (unsigned __int128)(at - table->below[i]) * wide / mass;
    return (uint32_t)(table->knots[i] + 1 + (int64_t)share);
}

double lengths_table_mean(const struct lengths_table *table)
{
    double mean = 0;
    for (size_t i = 0; i < table->count; i++) {
        double mass = (double)(table->below[i + 1] - table->below[i]) * 0x1p-63;
        mean += mass * ((double)(table->knots[i] + table->knots[i + 1]) + 1) / 2;
    }
    return mean;
}

enum { KNOTS_WHOLE = 256, KNOTS_PER_FOLD = 128, KNOTS_MAX = 4096 };

struct lengths_table *lengths_table_sample(double (*cdf)(const void *self, double x),
                                           const void *self, uint32_t min, uint32_t max)
{
    int64_t knots[KNOTS_MAX];
    double below[KNOTS_MAX];
    size_t count = 0; /* of knots */
    int64_t k = (int64_t)min - 1;
    double p = 0;
    for (; k < (int64_t)max && p < 1; count++) {
        check(count + 1 < KNOTS_MAX);
        knots[count] = k;
        below[count] = p;
        /* The last token below max is a knot: what lies above max all becomes max. */
        int64_t step = k < (int64_t)min + KNOTS_WHOLE ? 1 : 1 + k / KNOTS_PER_FOLD;
        k = k + step < (int64_t)max - 1 ? k + step : k + 1;
        double next = cdf(self, (double)k);
        p = next > p ? next : p;
    }
    knots[count] = k;
    below[count] = 1;
    return lengths_table_create(knots, below, count);
}

static void lengths_use(struct lengths *lengths, struct lengths_table *table)
{
    lengths->table = table;
    lengths->mean = lengths_table_mean(table);
    lengths->min = (uint32_t)(table->knots[0] + 1);
    lengths->max = (uint32_t)table->knots[table->count];
}

static uint32_t table_draw(const struct lengths *lengths, uint64_t bits)
{
    return lengths_table_draw(lengths->table, bits);
}

/* min and max of a config: the clip that all three have. */
struct clip {
    int64_t min, max;
};

static const struct field clip_fields[] = {
    {.name = "min",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .offset = offsetof(struct clip, min),
     .fallback = "1",
     .min = 0,
     .max = LENGTHS_TOKENS_MAX,
     .doc = "Shorter lengths become this; an output may be 0."},
    {.name = "max",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct clip, max),
     .min = 1,
     .max = LENGTHS_TOKENS_MAX,
     .doc = "Longer lengths become this; 2^30 when not given."},
    {0}};

static bool clip_check(const struct clip *clip, const struct site *site, const char *key,
                       uint32_t *max)
{
    *max = clip->max == FIELD_INT_UNSET ? LENGTHS_TOKENS_MAX : (uint32_t)clip->max;
    if (clip->min < (int64_t)*max)
        return true;
    site_error(site, key, "min must be below max");
    return false;
}

/* ---- gamma ---- */

/* log Γ(a) by Stirling's series (A&S 6.1.41) at a ≥ 10, reached by the recurrence. */
static double gamma_log(double a)
{
    double shift = 0;
    for (; a < 10; a++)
        shift += detmath_log(a);
    double x = 1 / (a * a);
    double series = (1.0 / 12 - x * (1.0 / 360 - x * (1.0 / 1260 - x * (1.0 / 1680)))) / a;
    return (a - 0.5) * detmath_log(a) - a + 0.91893853320467274178 + series - shift;
}

double lengths_table_gamma(double a, double x)
{
    if (!(x > 0))
        return 0;
    double front = detmath_exp(a * detmath_log(x) - x - gamma_log(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (double n = a + 1; term > 1e-17 * sum; n++) {
            term *= x / n;
            sum += term;
        }
        return front * sum;
    }
    const double tiny = 1e-300;
    double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int i = 1; i < 100000; i++) {
        double an = -i * (i - a);
        b += 2;
        d = an * d + b;
        d = fabs(d) < tiny ? tiny : d;
        c = b + an / c;
        c = fabs(c) < tiny ? tiny : c;
        d = 1 / d;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return 1 - front * h;
}

struct gamma_config {
    double mean, cv;
    struct clip clip;
};

static const struct field gamma_fields[] = {
    {.name = "mean",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct gamma_config, mean),
     .min = 1,
     .max = 1e7,
     .doc = "Mean of the lengths as used: after rounding up and clipping."},
    {.name = "cv",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct gamma_config, cv),
     .min = 0.02,
     .max = 10,
     .doc = "Standard deviation over mean, before rounding and clipping; 1 is exponential."},
    {.name = "clip",
     .kind = FIELD_INLINE,
     .offset = offsetof(struct gamma_config, clip),
     .doc = "Shortest and longest.",
     .fields = clip_fields},
    {0}};

struct gamma_shape {
    double shape, scale;
};

static double gamma_cdf(const void *self, double x)
{
    const struct gamma_shape *g = self;
    return lengths_table_gamma(g->shape, x / g->scale);
}

/* The table whose mean is off by *off from the wanted one, for one scale. */
static struct lengths_table *gamma_try(double scale, double shape, double mean, uint32_t min,
                                       uint32_t max, double *off)
{
    struct gamma_shape g = {shape, scale};
    struct lengths_table *table = lengths_table_sample(gamma_cdf, &g, min, max);
    *off = lengths_table_mean(table) - mean;
    return table;
}

/* The scale with the wanted mean (it rises with scale), by false position with the Illinois rule;
 * NULL when there is none. */
static struct lengths_table *gamma_solve(double mean, double shape, uint32_t min, uint32_t max)
{
    double low = mean / shape, high = low, below, above;
    struct lengths_table *table = gamma_try(low, shape, mean, min, max, &below);
    above = below;
    for (int i = 0; i < 40 && below > 0; i++) {
        lengths_table_free(table);
        low -= low * (i < 2 ? 0.01 : 0.5);
        table = gamma_try(low, shape, mean, min, max, &below);
    }
    for (int i = 0; i < 40 && above < 0; i++) {
        lengths_table_free(table);
        high *= i < 2 ? 1.01 : 2;
        table = gamma_try(high, shape, mean, min, max, &above);
    }
    if (below > 0 || above < 0) {
        lengths_table_free(table);
        return NULL;
    }
    double off = 1;
    int side = 0;
    for (int i = 0; i < 60; i++) {
        lengths_table_free(table);
        double mid = above > below ? high - above * (high - low) / (above - below) : low;
        table = gamma_try(mid, shape, mean, min, max, &off);
        if (fabs(off) <= 1e-10 * mean)
            break;
        if (off < 0) {
            low = mid;
            below = off;
            above = side < 0 ? above / 2 : above;
            side = -1;
        } else {
            high = mid;
            above = off;
            below = side > 0 ? below / 2 : below;
            side = 1;
        }
    }
    if (fabs(off) <= 1e-7 * mean)
        return table;
    lengths_table_free(table);
    return NULL;
}

static bool gamma_init(struct lengths *lengths, const void *config, const struct site *site,
                       const char *key)
{
    const struct gamma_config *c = config;
    uint32_t max;
    if (!clip_check(&c->clip, site, key, &max))
        return false;
    uint32_t min = c->clip.min < 1 ? 1 : (uint32_t)c->clip.min; /* ⌈Y⌉ of Y > 0 is never 0 */
    struct lengths_table *table =
        c->mean > min && c->mean < max ? gamma_solve(c->mean, 1 / (c->cv * c->cv), min, max) : NULL;
    if (!table) {
        site_error(site, key, "no gamma with this cv has the mean %g when clipped to %u … %u",
                   c->mean, min, max);
        return false;
    }
    lengths_use(lengths, table);
    return true;
}

static const struct lengths_type gamma_type = {.init = gamma_init, .draw = table_draw};
const struct variant lengths_table_gamma_variant = {
    .name = "gamma",
    .doc = "Gamma, rounded up to whole tokens, then clipped; the mean is that of the result.",
    .fields = gamma_fields,
    .size = sizeof(struct gamma_config),
    .ops = &gamma_type,
};

/* ---- pareto_lognormal ---- */

struct pareto_config {
    double pareto_share, pareto_min, pareto_shape, median, sigma;
    struct clip clip;
};

static const struct field pareto_fields[] = {
    {.name = "pareto_share",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct pareto_config, pareto_share),
     .min = 0,
     .max = 1,
     .doc = "Share of the lengths that come from the Pareto tail; the rest is log-normal."},
    {.name = "pareto_min",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct pareto_config, pareto_min),
     .min = 1,
     .max = 1e7,
     .doc = "Where the Pareto tail begins: P(Y > x) = (pareto_min / x)^pareto_shape."},
    {.name = "pareto_shape",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct pareto_config, pareto_shape),
     .min = 0.1,
     .max = 100,
     .doc = "How fast the tail falls; up to 1 only max keeps the mean finite."},
    {.name = "median",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct pareto_config, median),
     .min = 1,
     .max = 1e7,
     .doc = "Median of the log-normal part."},
    {.name = "sigma",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct pareto_config, sigma),
     .min = 0.001,
     .max = 5,
     .doc = "Standard deviation of the log-normal part's logarithm."},
    {.name = "clip",
     .kind = FIELD_INLINE,
     .offset = offsetof(struct pareto_config, clip),
     .doc = "Shortest and longest.",
     .fields = clip_fields},
    {0}};

static double pareto_cdf(const void *self, double x)
{
    const struct pareto_config *c = self;
    if (!(x > 0))
        return 0;
    double log_x = detmath_log(x);
    double normal = lengths_normal_cdf((log_x - detmath_log(c->median)) / c->sigma);
    double tail =
        x > c->pareto_min ? detmath_exp(c->pareto_shape * (detmath_log(c->pareto_min) - log_x)) : 1;
    return c->pareto_share * (1 - tail) + (1 - c->pareto_share) * normal;
}

static bool pareto_init(struct lengths *lengths, const void *config, const struct site *site,
                        const char *key)
{
    const struct pareto_config *c = config;
    uint32_t max;
    if (!clip_check(&c->clip, site, key, &max))
        return false;
    uint32_t min = c->clip.min < 1 ? 1 : (uint32_t)c->clip.min;
    lengths_use(lengths, lengths_table_sample(pareto_cdf, c, min, max));
    return true;
}

static const struct lengths_type pareto_type = {.init = pareto_init, .draw = table_draw};
const struct variant lengths_table_pareto_lognormal_variant = {
    .name = "pareto_lognormal",
    .doc = "A log-normal body with a Pareto tail mixed in, rounded up, then clipped: prompts of "
           "real services.",
    .fields = pareto_fields,
    .size = sizeof(struct pareto_config),
    .ops = &pareto_type,
};

/* ---- empirical ---- */

struct empirical_config {
    const char *file;
    struct clip clip;
};

static const struct field empirical_fields[] = {
    {.name = "file",
     .kind = FIELD_PATH,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct empirical_config, file),
     .doc = "A CSV with the header tokens,cdf or tokens,cdf_percent: rising lengths and the share "
            "of requests up to each, the last 1 (or 100), or the rest lies up to max. Linear in "
            "between, rounded up."},
    {.name = "clip",
     .kind = FIELD_INLINE,
     .offset = offsetof(struct empirical_config, clip),
     .doc = "Shortest and longest.",
     .fields = clip_fields},
    {0}};

enum { ROWS_MAX = 65536, LINE_MAX_BYTES = 256 };

/* A file being read into knots; errors point into it. */
struct reading {
    const char *path;
    struct errors *errors;
    uint32_t line;
    int64_t min, max;
    int64_t *knots; /* owned */
    double *below;  /* owned */
    size_t count;   /* of knots */
    double tokens, share;
};

static bool row_error(const struct reading *r, const char *message)
{
    struct source_pos pos = {.file = r->path, .line = r->line};
    errors_add(r->errors, SEVERITY_ERROR, &pos, "%s", message);
    return false;
}

/* P(X ≤ knot) = share; of two rows at one knot the later counts. */
static void knot_set(struct reading *r, int64_t knot, double share)
{
    if (r->knots[r->count - 1] != knot)
        r->knots[r->count++] = knot;
    r->below[r->count - 1] = share;
}

/* P(X ≤ ⌈tokens⌉) = share, within the clip: what lies above max becomes max. */
static void knot_add(struct reading *r, double tokens, double share)
{
    int64_t knot = (int64_t)ceil(tokens), last = r->knots[r->count - 1];
    knot = knot < r->min ? r->min : knot;
    if (knot < r->max) {
        knot_set(r, knot, share);
    } else if (last < r->max) {
        double before = r->below[r->count - 1];
        double part = (double)(r->max - 1 - last) / (double)(knot - last);
        if (last < r->max - 1)
            knot_set(r, r->max - 1, before + part * (share - before));
        knot_set(r, r->max, 1);
    }
}

static bool row_take(struct reading *r, const char *line, double per)
{
    char *end;
    double tokens = strtod(line, &end);
    if (end == line || *end != ',')
        return row_error(r, "a row is two numbers: tokens,cdf");
    const char *second = end + 1;
    double share = strtod(second, &end) / per;
    if (end == second || strspn(end, "\r\n") != strlen(end))
        return row_error(r, "a row is two numbers: tokens,cdf");
    if (!(tokens >= 0 && tokens <= LENGTHS_TOKENS_MAX) || !(share >= 0 && share <= 1))
        return row_error(r, "tokens must be 0 … 2^30, and the share within its range");
    if (!(tokens > r->tokens) || share < r->share)
        return row_error(r, "tokens must rise, and their shares must not fall");
    r->tokens = tokens;
    r->share = share;
    if (r->count + 2 >= ROWS_MAX)
        return row_error(r, "the file has more than 65,533 rows");
    knot_add(r, tokens, share);
    return true;
}

static bool rows_take(struct reading *r, FILE *file)
{
    char line[LINE_MAX_BYTES];
    double per = 0;
    bool ok = true;
    while (fgets(line, sizeof line, file)) {
        r->line++;
        if (r->line == 1) {
            line[strcspn(line, "\r\n")] = '\0';
            per = strcmp(line, "tokens,cdf") == 0           ? 1
                  : strcmp(line, "tokens,cdf_percent") == 0 ? 100
                                                            : 0;
            if (per == 0)
                return row_error(r, "the header must be tokens,cdf or tokens,cdf_percent");
            continue;
        }
        ok = row_take(r, line, per) && ok;
    }
    if (!ok)
        return false;
    if (r->line < 2)
        return row_error(r, "the file has no rows");
    if (r->share > 1 - 1e-6)
        return true;
    if (r->max == LENGTHS_TOKENS_MAX)
        return row_error(r, "the last share must be 1 (100 %), or max say how far the rest goes");
    knot_set(r, r->max, 1);
    return true;
}

static bool empirical_init(struct lengths *lengths, const void *config, const struct site *site,
                           const char *key)
{
    const struct empirical_config *c = config;
    uint32_t max;
    if (!clip_check(&c->clip, site, key, &max))
        return false;
    FILE *file = fopen(c->file, "r");
    if (!file) {
        site_error(site, key, "cannot open '%s': %s", c->file, strerror(errno));
        return false;
    }
    int64_t min = c->clip.min;
    struct reading r = {
        .path = c->file, .errors = site->errors, .min = min, .max = max, .tokens = -1};
    r.knots = memory_alloc(ROWS_MAX * sizeof *r.knots);
    r.below = memory_alloc(ROWS_MAX * sizeof *r.below);
    r.knots[0] = min - 1;
    r.below[0] = 0;
    r.count = 1;
    bool ok = rows_take(&r, file);
    fclose(file);
    if (ok) {
        r.below[r.count - 1] = 1;
        lengths_use(lengths, lengths_table_create(r.knots, r.below, r.count - 1));
    }
    free(r.knots);
    free(r.below);
    return ok;
}

static const struct lengths_type empirical_type = {.init = empirical_init, .draw = table_draw};
const struct variant lengths_table_empirical_variant = {
    .name = "empirical",
    .doc = "By a measured distribution function in a file.",
    .fields = empirical_fields,
    .size = sizeof(struct empirical_config),
    .ops = &empirical_type,
};
