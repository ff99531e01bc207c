/*
 * glob: patterns of names: "*" stands for any characters, "?" for one, all
 * others for themselves.  Pure; time is the product of both lengths at most.
 */
#ifndef TRANSPORT_BASE_GLOB_H
#define TRANSPORT_BASE_GLOB_H

#include <stdbool.h>

bool glob_match(const char *pattern, const char *name);
/* Whether text has a "*" or "?". */
bool glob_is_pattern(const char *text);

#endif /* TRANSPORT_BASE_GLOB_H */
