/*
 * Config files of any content.  What is accepted is a TraceConfig; what is
 * refused leaves one error for people.  Of any bytes, what is warned about is
 * bounded, and each path comes once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/config_support.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_config_load.h"
#include "tests/fuzz/texts/texts.h"

struct told {
	char path[CONFIG_SUPPORT_MAX][128];
	unsigned n;
};

static void
tell(void *arg, const char *path, const char *text)
{
	struct told *t = arg;
	unsigned i;

	if (t->n == CONFIG_SUPPORT_MAX || strlen(path) >= sizeof(t->path[0]) ||
	    text[0] == '\0')
		abort();
	for (i = 0; i < t->n; i++)
		if (strcmp(t->path[i], path) == 0)
			abort();
	strcpy(t->path[t->n++], path);
}

void
fuzz_trace_config_load(const uint8_t *data, size_t size)
{
	const struct trace_config_input in = { data, size, "f" };
	struct told told = { .n = 0 };
	char err[TRACE_CONFIG_LOAD_ERROR_SIZE] = "";
	Perfetto__Protos__TraceConfig *c;
	uint8_t *out = NULL;
	size_t len;

	config_support_check(data, size, tell, &told);
	if (trace_config_load(&in, &out, &len, err, sizeof(err)) < 0) {
		if (err[0] != 'f' || err[1] != ':' || out != NULL)
			abort();
		return;
	}
	c = perfetto__protos__trace_config__unpack(NULL, len, out);
	if (c == NULL || len == 0)
		abort();
	perfetto__protos__trace_config__free_unpacked(c, NULL);
	free(out);
}
