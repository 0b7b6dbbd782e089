/* Which fleetsim this is. The build gives FLEETSIM_VERSION and FLEETSIM_BUILD_TYPE, and makes
 * revision.h (revision.cmake). */
#ifndef FLEETSIM_SIM_RUN_VERSION_H
#define FLEETSIM_SIM_RUN_VERSION_H

#include <revision.h>

#define VERSION_REVISION FLEETSIM_REVISION /* git; empty outside a checkout */
#define VERSION_TEXT     FLEETSIM_VERSION
#define VERSION_FLAGS    FLEETSIM_BUILD_TYPE
#ifdef __clang__
#define VERSION_COMPILER "clang " __clang_version__
#else
#define VERSION_COMPILER "gcc " __VERSION__
#endif

#endif
