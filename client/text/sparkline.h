/* sparkline: a row of values as small bars, one column each.  Pure. */
#ifndef CLIENT_TEXT_SPARKLINE_H
#define CLIENT_TEXT_SPARKLINE_H

#include <stddef.h>

/* Bytes of a bar, U+2581 to U+2588. */
#define SPARKLINE_BAR 3u

/*
 * Draws the n values in their order, in UTF-8, and returns out.  The largest
 * has the highest bar, 0 and nothing else the lowest; a value below 0 is not
 * known, and a space.  size: n * SPARKLINE_BAR + 1 is enough; bars that do not
 * fit are left out.
 */
char *sparkline(char *out, size_t size, const double *values, size_t n);

#endif /* CLIENT_TEXT_SPARKLINE_H */
