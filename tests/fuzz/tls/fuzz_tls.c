/* A hostile peer of a TLS server, and of a client; input: tls_fuzz.h. */
#include "tests/fuzz/tls/tls_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	tls_fuzz_run(TLS_SERVER, data, size);
	tls_fuzz_run(TLS_CLIENT, data, size);
	return 0;
}
