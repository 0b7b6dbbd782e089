/* JSON out. Not jansson: a time is written as its exact decimal number of seconds, a double in the
 * shortest form that reads back to it, and undefined as null, none of which jansson can print. The
 * names are not jansson's: one of the program would stand in for the library's own. */
#ifndef FLEETSIM_SIM_CLI_JSON_OUT_H
#define FLEETSIM_SIM_CLI_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    int depth;
    bool first; /* of the object or list in hand */
};

void json_out_init(struct json *json, FILE *out);
/* key: NULL in a list and at the top. */
void json_out_object(struct json *json, const char *key);
void json_out_object_end(struct json *json);
void json_out_list(struct json *json, const char *key);
void json_out_list_end(struct json *json);
void json_out_text(struct json *json, const char *key, const char *value); /* NULL: null */
void json_out_bool(struct json *json, const char *key, bool value);
void json_out_count(struct json *json, const char *key, uint64_t value);
void json_out_int(struct json *json, const char *key, int64_t value); /* COLUMN_INT_NONE: null */
void json_out_real(struct json *json, const char *key, double value); /* NaN, infinity: null */
void json_out_time(struct json *json, const char *key, int64_t ps);   /* s; TIME_NONE: null */

#endif
