#include "sim/base/request.h"

const char *const outcome_names[OUTCOME_COUNT] = {
    [OUTCOME_COMPLETED] = "completed",   [OUTCOME_REFUSED] = "refused",
    [OUTCOME_UNSERVABLE] = "unservable", [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_IN_FLIGHT] = "in_flight",
};
