#include "sim/workload/site.h"

#include <stdarg.h>
#include <stdio.h>

void site_error(const struct site *site, const char *key, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);

    struct source_pos pos = {0};
    if (site->where && site->where->find) {
        char path[256];
        snprintf(path, sizeof path, "workload[%zu]%s%s", site->class_index, key[0] ? "." : "", key);
        site->where->find(site->where->self, path, &pos);
    }
    errors_add(site->errors, SEVERITY_ERROR, &pos, "%s", message);
}
