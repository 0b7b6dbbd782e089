#include "sim/base/field.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/base/errors.h"
#include "sim/base/time.h"

/* How much of a user's text a message repeats. */
enum { QUOTED_MAX = 40, WHY_MAX = FIELD_WHY_MAX };

static void why_append(char *why, size_t why_size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void why_append(char *why, size_t why_size, const char *fmt, ...)
{
    size_t used = strlen(why);
    va_list args;
    va_start(args, fmt);
    vsnprintf(why + used, why_size - used, fmt, args);
    va_end(args);
}

/* ---- ranges --------------------------------------------------------------------------------- */

bool field_has_min(const struct field *field)
{
    return field->min != 0 || field->max != 0 || (field->flags & FIELD_MIN_OPEN);
}

bool field_has_max(const struct field *field)
{
    return field->max > field->min || (field->max == field->min && field->max != 0);
}

char *field_limit_text(const struct field *field, double limit, char *buffer)
{
    if (field->kind == FIELD_TIME)
        return units_text_time(time_from_seconds(limit), buffer);
    if (field->kind == FIELD_REAL)
        return units_text_real(limit, field->unit, buffer);
    snprintf(buffer, UNITS_TEXT_MAX, "%.15g", limit);
    return buffer;
}

/* value in the field's range unit; text is what the user wrote. */
static bool range_check(const struct field *field, double value, const char *text, char *why,
                        size_t why_size)
{
    char limit[UNITS_TEXT_MAX];
    const char *rule = NULL;
    if (field_has_min(field)) {
        bool open = field->flags & FIELD_MIN_OPEN;
        if (value < field->min || (open && value == field->min)) {
            rule = open ? "more than" : "at least";
            field_limit_text(field, field->min, limit);
        }
    }
    if (!rule && field_has_max(field) && value > field->max) {
        rule = "at most";
        field_limit_text(field, field->max, limit);
    }
    if (!rule)
        return true;
    snprintf(why, why_size, "must be %s %s, not %.*s", rule, limit, QUOTED_MAX, text);
    return false;
}

/* ---- ISO 8601 ------------------------------------------------------------------------------- */

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar (era arithmetic: 400 years
 * are 146,097 days; the year begins in March so that the leap day comes last). */
static int64_t days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = days / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

/* Reads exactly `digits` digits; -1 when there are not so many. */
static int digits_read(const char **text, int digits)
{
    int value = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return -1;
        value = value * 10 + (**text - '0');
    }
    return value;
}

static bool literal_read(const char **text, char c)
{
    if (**text != c)
        return false;
    (*text)++;
    return true;
}

static bool date_valid(int year, int month, int day)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= month_days[month - 1] + (month == 2 && leap);
}

static bool stamp_parse(const char *text, int64_t *stamp)
{
    int year = digits_read(&text, 4);
    int month = literal_read(&text, '-') ? digits_read(&text, 2) : -1;
    int day = literal_read(&text, '-') ? digits_read(&text, 2) : -1;
    int hour = 0, minute = 0, second = 0;
    if (!date_valid(year, month, day))
        return false;
    if (*text) {
        if (!literal_read(&text, 'T') && !literal_read(&text, ' '))
            return false;
        hour = digits_read(&text, 2);
        minute = literal_read(&text, ':') ? digits_read(&text, 2) : -1;
        if (literal_read(&text, ':'))
            second = digits_read(&text, 2);
        if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 ||
            !literal_read(&text, 'Z') || *text)
            return false;
    }
    *stamp = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    return true;
}

/* ---- parsing -------------------------------------------------------------------------------- */

/* Puts what was written before a reason: "'5 x' is not a time such as …", "'5 x': unknown unit". */
static bool refuse(const char *text, const char *reason, char *why, size_t why_size)
{
    size_t length = strlen(text);
    bool sentence = strncmp(reason, "not ", 4) == 0 || strncmp(reason, "neither ", 8) == 0 ||
                    strncmp(reason, "too ", 4) == 0;
    snprintf(why, why_size, "'%.*s%s'%s %s", QUOTED_MAX, text, length > QUOTED_MAX ? "..." : "",
             sentence ? " is" : ":", reason);
    return false;
}

static bool int_parse(const struct field *field, const char *text, int64_t *value, char *why,
                      size_t why_size)
{
    char reason[WHY_MAX] = "";
    if (strcmp(text, "unlimited") == 0) {
        if (!(field->flags & FIELD_UNLIMITED)) {
            snprintf(why, why_size, "cannot be unlimited");
            return false;
        }
        *value = FIELD_INT_UNLIMITED;
        return true;
    }
    int64_t parsed;
    if (!units_parse_int(text, field->unit, &parsed, reason, sizeof reason)) {
        refuse(text, reason, why, why_size);
        if (field->flags & FIELD_UNLIMITED)
            why_append(why, why_size, " or 'unlimited'");
        return false;
    }
    if (parsed == FIELD_INT_UNLIMITED || parsed == FIELD_INT_UNSET)
        return refuse(text, "too large", why, why_size);
    if (!range_check(field, (double)parsed, text, why, why_size))
        return false;
    *value = parsed;
    return true;
}

static bool real_parse(const struct field *field, const char *text, double *value, char *why,
                       size_t why_size)
{
    char reason[WHY_MAX] = "";
    double parsed;
    if (!units_parse_real(text, field->unit, &parsed, reason, sizeof reason))
        return refuse(text, reason, why, why_size);
    if (!isfinite(parsed))
        return refuse(text, "not a finite number", why, why_size);
    if (!range_check(field, parsed, text, why, why_size))
        return false;
    *value = parsed;
    return true;
}

/* Whether the text is a number and nothing else. */
static bool bare_is(const char *text)
{
    return text[strspn(text, "0123456789+-.eE_ ")] == '\0';
}

static bool time_parse(const struct field *field, const char *text, int64_t *value, char *why,
                       size_t why_size)
{
    char reason[WHY_MAX] = "";
    int64_t parsed;
    if (!units_parse_time(text, &parsed, reason, sizeof reason))
        return refuse(text, reason, why, why_size);
    if (parsed == TIME_NEVER || parsed == TIME_NONE)
        return refuse(text, "too large", why, why_size);
    if (!range_check(field, time_seconds(parsed), text, why, why_size))
        return false;
    if (field->bare_max > 0 && time_seconds(parsed) > field->bare_max && bare_is(text)) {
        snprintf(why, why_size,
                 "%.*s without a unit is in seconds: write '%.*s s' or, say, '%.*s ms'", QUOTED_MAX,
                 text, QUOTED_MAX, text, QUOTED_MAX, text);
        return false;
    }
    *value = parsed;
    return true;
}

void field_name_refuse(const char *text, const char *const *names, const char *const *later,
                       const char *kind, char *why, size_t why_size)
{
    for (size_t i = 0; later && later[i]; i++) {
        if (strcmp(later[i], text) == 0) {
            snprintf(why, why_size, "%s '%s' is designed but not built yet", kind, text);
            return;
        }
    }
    const char *near = strlen(text) <= QUOTED_MAX ? errors_nearest(text, names) : NULL;
    snprintf(why, why_size, "unknown %s '%.*s'", kind, QUOTED_MAX, text);
    if (near)
        why_append(why, why_size, ", did you mean '%s'?", near);
    for (size_t i = 0; !near && names[i]; i++)
        why_append(why, why_size, "%s%s", i == 0 ? "; known: " : ", ", names[i]);
}

static bool choice_parse(const struct field *field, const char *text, int *value, char *why,
                         size_t why_size)
{
    for (int i = 0; field->choices[i]; i++) {
        if (strcmp(field->choices[i], text) == 0) {
            *value = i;
            return true;
        }
    }
    field_name_refuse(text, field->choices, field->later, field->name ? field->name : "value", why,
                      why_size);
    return false;
}

static bool bool_parse(const char *text, bool *value, char *why, size_t why_size)
{
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0)
        return refuse(text, "neither true nor false", why, why_size);
    *value = yes;
    return true;
}

bool field_is_scalar(const struct field *field)
{
    return field->kind >= FIELD_BOOL && field->kind <= FIELD_CHOICE;
}

bool field_parse(const struct field *field, const char *text, void *target, struct arena *arena,
                 char *why, size_t why_size)
{
    check(why_size > 0);
    why[0] = '\0';
    switch (field->kind) {
    case FIELD_BOOL:
        return bool_parse(text, target, why, why_size);
    case FIELD_INT:
        return int_parse(field, text, target, why, why_size);
    case FIELD_REAL:
        return real_parse(field, text, target, why, why_size);
    case FIELD_TIME:
        return time_parse(field, text, target, why, why_size);
    case FIELD_STAMP:
        return stamp_parse(text, target) ||
               refuse(text, "not a UTC time such as 2026-03-02T00:00:00Z", why, why_size);
    case FIELD_TEXT:
    case FIELD_PATH:
        *(const char **)target = arena_copy(arena, text);
        return true;
    case FIELD_CHOICE:
        return choice_parse(field, text, target, why, why_size);
    default:
        check_fail(__FILE__, __LINE__, "field_is_scalar(field)", "field %s", field->name);
    }
}

/* ---- defaults ------------------------------------------------------------------------------- */

const struct field *field_find(const struct field *fields, const char *name, size_t *offset)
{
    for (const struct field *field = fields; field->kind != FIELD_END; field++) {
        if (field->kind == FIELD_INLINE) {
            const struct field *found = field_find(field->fields, name, offset);
            if (found && offset)
                *offset += field->offset;
            if (found)
                return found;
        } else if (strcmp(field->name, name) == 0) {
            if (offset)
                *offset = field->offset;
            return field;
        }
    }
    return NULL;
}

const struct variant *field_variant(const struct field *field, const char *name)
{
    check(field->kind == FIELD_VARIANT);
    for (size_t i = 0; field->variants[i]; i++)
        if (strcmp(field->variants[i]->name, name) == 0)
            return field->variants[i];
    return NULL;
}

const struct variant *field_bare(const struct field *field, const char *text)
{
    bool named = !field->bare || field_variant(field, text);
    return named ? NULL : field_variant(field, field->bare);
}

void field_variant_init(const struct variant *variant, struct variant_value *value,
                        struct arena *arena)
{
    value->type = variant;
    value->config = variant->size ? arena_alloc(arena, variant->size) : NULL;
    if (variant->fields)
        field_defaults(variant->fields, value->config, arena);
}

void field_unset(const struct field *field, void *target)
{
    switch (field->kind) {
    case FIELD_BOOL:
        *(bool *)target = false;
        break;
    case FIELD_INT:
    case FIELD_TIME:
    case FIELD_STAMP:
        *(int64_t *)target = FIELD_INT_UNSET;
        break;
    case FIELD_REAL:
        *(double *)target = NAN;
        break;
    case FIELD_TEXT:
    case FIELD_PATH:
        *(const char **)target = NULL;
        break;
    case FIELD_CHOICE:
        *(int *)target = -1;
        break;
    case FIELD_VARIANT:
        *(struct variant_value *)target = (struct variant_value){NULL, NULL};
        break;
    case FIELD_LIST:
        *(struct field_list *)target = (struct field_list){NULL, 0};
        break;
    case FIELD_STRUCT:
    case FIELD_INLINE:
    case FIELD_END:
        check_fail(__FILE__, __LINE__, "field can be unset", "field %s", field->name);
    }
}

static void default_fill(const struct field *field, void *target, struct arena *arena)
{
    char why[WHY_MAX];
    if (field->kind == FIELD_STRUCT || field->kind == FIELD_INLINE) {
        field_defaults(field->fields, target, arena);
    } else if (!field->fallback) {
        /* A list without a flag is empty by default, which is its unset value. */
        check_msg(field->kind == FIELD_LIST || (field->flags & (FIELD_REQUIRED | FIELD_OPTIONAL)),
                  "field %s has no default and is neither required nor optional", field->name);
        field_unset(field, target);
    } else if (field->kind == FIELD_VARIANT) {
        const struct variant *bare = field_bare(field, field->fallback);
        const struct variant *variant = bare ? bare : field_variant(field, field->fallback);
        check_msg(variant, "field %s defaults to an unknown variant %s", field->name,
                  field->fallback);
        field_variant_init(variant, target, arena);
        if (bare) {
            const struct field *first = bare->fields;
            void *at = (char *)((struct variant_value *)target)->config + first->offset;
            bool ok = field_parse(first, field->fallback, at, arena, why, sizeof why);
            check_msg(ok, "default of %s: %s", field->name, why);
        }
    } else {
        check_msg(field_is_scalar(field), "field %s cannot have a default", field->name);
        bool ok = field_parse(field, field->fallback, target, arena, why, sizeof why);
        check_msg(ok, "default of %s: %s", field->name, why);
    }
}

void field_defaults(const struct field *fields, void *base, struct arena *arena)
{
    for (const struct field *field = fields; field->kind != FIELD_END; field++)
        default_fill(field, (char *)base + field->offset, arena);
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char *stamp_text(int64_t stamp, struct arena *arena)
{
    int64_t days = stamp / 86400 - (stamp % 86400 < 0);
    int second = (int)(stamp - days * 86400);
    int64_t year;
    int month, day;
    civil_from_days(days, &year, &month, &day);
    return arena_printf(arena, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02dZ", year, month, day,
                        second / 3600, second / 60 % 60, second % 60);
}

const char *field_text(const struct field *field, const void *target, struct arena *arena)
{
    char buffer[UNITS_TEXT_MAX];
    check_msg(field_is_scalar(field), "field %s", field->name);
    if (field->kind == FIELD_BOOL)
        return *(const bool *)target ? "true" : "false";
    if (field->kind == FIELD_TEXT || field->kind == FIELD_PATH) {
        const char *text = *(const char *const *)target;
        return text ? arena_copy(arena, text) : NULL;
    }
    if (field->kind == FIELD_CHOICE) {
        int choice = *(const int *)target;
        return choice < 0 ? NULL : field->choices[choice];
    }
    if (field->kind == FIELD_REAL) {
        double value = *(const double *)target;
        return isnan(value) ? NULL : arena_copy(arena, units_text_real(value, field->unit, buffer));
    }
    int64_t value = *(const int64_t *)target;
    if (value == FIELD_INT_UNSET)
        return NULL;
    if (field->kind == FIELD_TIME)
        return arena_copy(arena, units_text_time(value, buffer));
    if (field->kind == FIELD_STAMP)
        return stamp_text(value, arena);
    if (value == FIELD_INT_UNLIMITED)
        return "unlimited";
    return arena_printf(arena, "%" PRId64, value);
}
