#include "tests/fuzz/memory/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_shm(data, size);
	fuzz_commit(data, size);
	return 0;
}
