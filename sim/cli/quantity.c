#include "sim/cli/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool quantity_read(const char *text, const char *option, enum unit unit, double fallback,
                   double low, double high, double *value, struct errors *errors)
{
    char why[160] = "", bounds[2][UNITS_TEXT_MAX];
    *value = fallback;
    if (!text)
        return true;
    bool ok = units_parse_real(text, unit, value, why, sizeof why);
    if (ok && !(*value >= low && *value <= high)) {
        snprintf(why, sizeof why, "must be from %s to %s", units_text_real(low, unit, bounds[0]),
                 units_text_real(high, unit, bounds[1]));
        ok = false;
    }
    if (!ok)
        errors_add(errors, SEVERITY_ERROR, NULL, "--%s '%s': %s", option, text, why);
    return ok;
}

bool quantity_whole(const char *text, const char *option, enum unit unit, double fallback,
                    double low, double high, double *value, struct errors *errors)
{
    if (!quantity_read(text, option, unit, fallback, low, high, value, errors))
        return false;
    if (*value == floor(*value))
        return true;
    errors_add(errors, SEVERITY_ERROR, NULL, "--%s '%s': must be a whole number", option, text);
    return false;
}

bool quantity_choice(const char *text, const char *option, const char *const *names, int *value,
                     struct errors *errors)
{
    if (!text)
        return true;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0) {
            *value = i;
            return true;
        }
    }
    const char *near = errors_nearest(text, names);
    errors_add(errors, SEVERITY_ERROR, NULL, "--%s '%s' is not known%s%s%s", option, text,
               near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    return false;
}
