/*
 * failure: a sentence on what failed, for people, and the -1 that goes with it,
 * in one expression: return FAILURE(err, err_size, "cannot open %s", path);
 *
 * A macro rather than a function, so that compilers and analysers see the -1.
 */
#ifndef TRANSPORT_BASE_FAILURE_H
#define TRANSPORT_BASE_FAILURE_H

#include <stdio.h>

#define FAILURE(err, err_size, ...) (snprintf(err, err_size, __VA_ARGS__), -1)

#endif /* TRANSPORT_BASE_FAILURE_H */
