#include "client/ftrace/tracefs/cpu_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 128

/* The value of a line "KEY: VALUE", or NULL. */
static const char *
value_of(const char *line, const char *key)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) != 0 || line[n] != ':')
		return NULL;
	return line + n + 1;
}

/* "13.228639" in nanoseconds. */
static uint64_t
nanoseconds(const char *value)
{
	unsigned long long s, us;

	if (sscanf(value, "%llu.%6llu", &s, &us) != 2)
		return 0;
	return s * 1000000000u + us * 1000u;
}

static void
take_line(struct cpu_stats *s, const char *line)
{
	const char *v;

	if ((v = value_of(line, "entries")) != NULL)
		s->entries = strtoull(v, NULL, 10);
	else if ((v = value_of(line, "overrun")) != NULL)
		s->overrun = strtoull(v, NULL, 10);
	else if ((v = value_of(line, "commit overrun")) != NULL)
		s->commit_overrun = strtoull(v, NULL, 10);
	else if ((v = value_of(line, "bytes")) != NULL)
		s->bytes = strtoull(v, NULL, 10);
	else if ((v = value_of(line, "dropped events")) != NULL)
		s->dropped = strtoull(v, NULL, 10);
	else if ((v = value_of(line, "read events")) != NULL)
		s->read = strtoull(v, NULL, 10);
	else if ((v = value_of(line, "oldest event ts")) != NULL)
		s->oldest_s = strtod(v, NULL);
	else if ((v = value_of(line, "now ts")) != NULL) {
		s->now_s = strtod(v, NULL);
		s->now_ns = nanoseconds(v);
	}
}

void
cpu_stats_parse(struct cpu_stats *s, const char *text, size_t len)
{
	const char *end = text + len, *nl;
	char line[LINE_MAX_BYTES];
	size_t n;

	memset(s, 0, sizeof(*s));
	for (; text < end; text = nl + 1) {
		nl = memchr(text, '\n', (size_t)(end - text));
		n = (size_t)((nl != NULL ? nl : end) - text);
		if (n < sizeof(line)) {
			memcpy(line, text, n);
			line[n] = '\0';
			take_line(s, line);
		}
		if (nl == NULL)
			break;
	}
}
