/*
 * machine_word: which machines a word of a config or a command line means.
 *
 * One rule for all who name machines.  The collector's own machine is called
 * "host" wherever machines are listed; a word may mean it by the name that it
 * has in SystemInfo (PERFETTO_MACHINE_NAME, else that of `uname -s`), too, as
 * Perfetto's service takes it.  Another machine that calls itself "host" is not
 * meant by that word.  Pure.
 */
#ifndef TRANSPORT_BASE_MACHINE_WORD_H
#define TRANSPORT_BASE_MACHINE_WORD_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_WORD_HOST "host"

/* word: a name or a pattern (glob.h); id 0: the collector's own; name or NULL. */
bool machine_word_means(const char *word, uint32_t id, const char *name);

#endif /* TRANSPORT_BASE_MACHINE_WORD_H */
