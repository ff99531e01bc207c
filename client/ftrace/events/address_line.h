/*
 * address_line: lines of the kernel's text files that begin with an address in
 * hexadecimal.
 */
#ifndef CLIENT_FTRACE_EVENTS_ADDRESS_LINE_H
#define CLIENT_FTRACE_EVENTS_ADDRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads "ffffffff81000000 REST": returns the rest, NULL if the line does not
 * begin with 1 to 16 digits, a blank behind them.
 */
static inline char *
address_line(char *line, uint64_t *address)
{
	uint64_t v = 0;
	unsigned n;
	char c;

	for (n = 0; n <= 16; n++) {
		c = line[n];
		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	if (n == 0 || n > 16 || line[n] != ' ')
		return NULL;
	*address = v;
	return line + n + 1;
}

#endif /* CLIENT_FTRACE_EVENTS_ADDRESS_LINE_H */
