#include "tests/fuzz/traces/traces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_inspect(data, size);
	fuzz_trace_summary(data, size);
	fuzz_trace_clocks(data, size);
	fuzz_packet_show(data, size);
	fuzz_slice_joiner(data, size);
	fuzz_trace_expand(data, size);
	return 0;
}
