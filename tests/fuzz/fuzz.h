/* A fuzz target is one file, fuzz_NAME.c, that defines this function; its first inputs lie in
 * corpus/NAME/. It is built twice: with libFuzzer (preset fuzz), and with driver.c as a plain test
 * that runs the corpus through it, so that a finding, once added there, stays found. */
#ifndef FLEETSIM_TESTS_FUZZ_FUZZ_H
#define FLEETSIM_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Must take any bytes, leak nothing, and return 0. The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
