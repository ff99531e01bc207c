#include "tests/fuzz/segments/segments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_splitter(data, size);
	fuzz_stats(data, size);
	return 0;
}
