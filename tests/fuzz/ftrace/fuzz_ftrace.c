#include "tests/fuzz/ftrace/ftrace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_page_reader(data, size);
	fuzz_bundle(data, size);
	return 0;
}
