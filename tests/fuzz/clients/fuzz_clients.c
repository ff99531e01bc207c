#include "tests/fuzz/clients/clients.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_rpc_client(data, size);
	fuzz_hostile_host(data, size);
	return 0;
}
