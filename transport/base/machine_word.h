/*
 * machine_word: which machines a word of a config or a command line means.
 *
 * One rule wherever machines are named.  The collector's own machine is called
 * "host" wherever machines are listed; a word may also be the name that this
 * machine has in SystemInfo (PERFETTO_MACHINE_NAME, else that of `uname -s`),
 * as in Perfetto's service.  Another machine that calls itself "host" is not
 * meant by that word.  Pure.
 */
#ifndef TRANSPORT_BASE_MACHINE_WORD_H
#define TRANSPORT_BASE_MACHINE_WORD_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_WORD_HOST "host"

/*
 * Whether word, a name or pattern (glob.h), means the machine with this id (0:
 * the collector's own) and name (NULL: it has none).
 */
bool machine_word_means(const char *word, uint32_t id, const char *name);

#endif /* TRANSPORT_BASE_MACHINE_WORD_H */
