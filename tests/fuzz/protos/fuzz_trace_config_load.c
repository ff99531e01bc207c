/*
 * Config files of any content.  What is accepted is a TraceConfig; what is
 * refused leaves one error for people.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/trace_config.pb-c.h"
#include "protos/trace_config_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[TRACE_CONFIG_LOAD_ERROR_SIZE] = "";
	Perfetto__Protos__TraceConfig *c;
	uint8_t *out = NULL;
	size_t len;

	if (trace_config_load(data, size, "f", &out, &len, err,
	    sizeof(err)) < 0) {
		if (err[0] != 'f' || err[1] != ':' || out != NULL)
			abort();
		return 0;
	}
	c = perfetto__protos__trace_config__unpack(NULL, len, out);
	if (c == NULL || len == 0)
		abort();
	perfetto__protos__trace_config__free_unpacked(c, NULL);
	free(out);
	return 0;
}
