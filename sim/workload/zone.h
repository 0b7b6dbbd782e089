/* Time zones as fixed offsets from UTC and a small table of rules. The machine's own tz database is
 * not asked: two machines may hold two versions of it, and a run must not depend on that. */
#ifndef FLEETSIM_SIM_WORKLOAD_ZONE_H
#define FLEETSIM_SIM_WORKLOAD_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Days since 1970-01-01 of a civil date of the Gregorian calendar; month 1 … 12. */
int64_t zone_days(int year, int month, int day);

enum zone_rule {
    ZONE_FIXED,
    ZONE_US, /* second Sunday of March 2:00 to first Sunday of November 2:00, local; since 2007 */
    ZONE_EU, /* last Sunday of March 1:00 UTC to last Sunday of October 1:00 UTC; since 1996 */
    ZONE_AU, /* first Sunday of October 2:00 to first Sunday of April 3:00, local; since 2008 */
};

struct zone {
    const char *name;
    int32_t standard_s; /* local minus UTC, without daylight saving */
    enum zone_rule rule;
};

/* Names with rules, NULL-terminated: for messages. */
extern const char *const zone_names[];
/* Oldest year in which all rules of the table hold. */
enum { ZONE_YEAR_MIN = 2008, ZONE_YEAR_MAX = 2199 };

/* Reads "America/New_York", "UTC", "+05:30", "UTC-3"; false when it is none. */
bool zone_parse(const char *text, struct zone *zone);
/* Local minus UTC at a time, in s. */
int32_t zone_offset(const struct zone *zone, int64_t unix_s);
/* The first time after unix_s at which the offset changes, in Unix seconds; INT64_MAX: never. */
int64_t zone_next_change(const struct zone *zone, int64_t unix_s);

#endif
