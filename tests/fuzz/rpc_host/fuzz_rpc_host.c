#include "tests/fuzz/rpc_host/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_rpc_host(data, size);
	fuzz_tls_frames(data, size);
	return 0;
}
