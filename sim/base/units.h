/* Quantities as users write them: "80 GiB", "2 ms", "$2.10/h", "70 %", "173.6 /s", "1e6". A bare
 * number is in the unit of the reference page: that is the unit this table calls canonical. */
#ifndef FLEETSIM_SIM_BASE_UNITS_H
#define FLEETSIM_SIM_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unit {
    UNIT_NONE,         /* a pure number */
    UNIT_TIME,         /* s; ps, ns, us, µs, ms, s, min, h, d (day) */
    UNIT_RATE,         /* 1/s; "/s", "/min", "/h", "/day" */
    UNIT_FRACTION,     /* 1; "%" */
    UNIT_TOKENS,       /* tokens; "tokens", "k", "K" (1000), "M" */
    UNIT_TOKENS_PER_S, /* tokens/s; "tokens/s", "tok/s" */
    UNIT_BYTES,        /* B; kB, MB, GB, TB, KiB, MiB, GiB, TiB */
    UNIT_BYTES_PER_S,  /* B/s; the same with /s */
    UNIT_FLOPS,        /* FLOP/s; GFLOPS, TFLOPS, PFLOPS (and FLOP/s forms) */
    UNIT_USD,          /* $; "$3", "3 $", "3 USD" */
    UNIT_USD_PER_HOUR, /* $/h; "$2.10/h", "2.10 $/h" */
    UNIT_USD_PER_MTOK, /* $ per million tokens; "$0.60/Mtok" */
    UNIT_WATTS,        /* W; kW, MW */
    UNIT_BITS,         /* bits; "bits" */
    UNIT_COUNT
};

/* The canonical unit's name for output ("s", "1/s", "1", "B", "$/h", …). */
const char *units_name(enum unit unit);
/* What may be written, for error messages: "a time such as 30 s, 5 min, 2 h". */
const char *units_hint(enum unit unit);

/* Reads the whole of text as a quantity. On failure returns false and writes a reason without the
 * value or a trailing period ("not a time such as 30 s, 5 min, 2 h") to why. */
bool units_parse_real(const char *text, enum unit unit, double *value, char *why, size_t why_size);
/* The same for times, exactly: the decimal text is scaled in integers and rounded once. */
bool units_parse_time(const char *text, int64_t *value_ps, char *why, size_t why_size);
/* The same for whole numbers; "1e6" and "15_000" and "8k" tokens are whole numbers, "1.5" is not.
 */
bool units_parse_int(const char *text, enum unit unit, int64_t *value, char *why, size_t why_size);

/* Text that units_parse_* reads back to the same value, with its unit; shortest form.
 * Returns buffer (at least UNITS_TEXT_MAX bytes). */
enum { UNITS_TEXT_MAX = 48 };
char *units_text_real(double value, enum unit unit, char *buffer);
char *units_text_time(int64_t value_ps, char *buffer);

#endif
