/* trigger: `tributary trigger`, activates triggers. */
#ifndef CLIENT_ORDERS_TRIGGER_H
#define CLIENT_ORDERS_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>

struct dial_options;

int trigger_main(int argc, char **argv);

/*
 * Activates triggers at a collector's producer socket (connect NULL: the
 * default), and prints the outcome on standard error, when quiet only a
 * failure.  Returns the exit status.
 */
int trigger_activate(const char *connect, const struct dial_options *how,
    const char *const *names, size_t n, bool quiet);

#endif /* CLIENT_ORDERS_TRIGGER_H */
