#include "sim/cli/json_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sim/base/column.h"
#include "sim/base/time.h"

static void text_print(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c == '\n')
            fputs("\\n", out);
        else if (*c == '\t')
            fputs("\\t", out);
        else if (*c < 0x20 || *c == 0x7F)
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

/* The comma, the new line and the key before a value. */
static void lead(struct json *json, const char *key)
{
    if (json->depth > 0)
        fprintf(json->out, "%s\n%*s", json->first ? "" : ",", 2 * json->depth, "");
    json->first = false;
    if (key) {
        text_print(json->out, key);
        fputs(": ", json->out);
    }
}

static void open_level(struct json *json, const char *key, char bracket)
{
    lead(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->first = true;
}

static void close_level(struct json *json, char bracket)
{
    json->depth--;
    if (!json->first)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    json->first = false;
    fputc(bracket, json->out);
    if (json->depth == 0)
        fputc('\n', json->out);
}

void json_out_init(struct json *json, FILE *out)
{
    *json = (struct json){.out = out, .first = true};
}

void json_out_object(struct json *json, const char *key)
{
    open_level(json, key, '{');
}

void json_out_object_end(struct json *json)
{
    close_level(json, '}');
}

void json_out_list(struct json *json, const char *key)
{
    open_level(json, key, '[');
}

void json_out_list_end(struct json *json)
{
    close_level(json, ']');
}

void json_out_text(struct json *json, const char *key, const char *value)
{
    lead(json, key);
    if (value)
        text_print(json->out, value);
    else
        fputs("null", json->out);
}

void json_out_bool(struct json *json, const char *key, bool value)
{
    lead(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_out_count(struct json *json, const char *key, uint64_t value)
{
    lead(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_out_int(struct json *json, const char *key, int64_t value)
{
    lead(json, key);
    if (value == COLUMN_INT_NONE)
        fputs("null", json->out);
    else
        fprintf(json->out, "%" PRId64, value);
}

void json_out_real(struct json *json, const char *key, double value)
{
    lead(json, key);
    if (!isfinite(value)) {
        fputs("null", json->out);
        return;
    }
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, json->out);
}

void json_out_time(struct json *json, const char *key, int64_t ps)
{
    char text[TIME_TEXT_MAX];
    lead(json, key);
    fputs(ps == TIME_NONE ? "null" : time_text(ps, text), json->out);
}
