#include "tests/fuzz/outbox/outbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_outbox_recover(data, size);
	fuzz_outbox_spool(data, size);
	return 0;
}
