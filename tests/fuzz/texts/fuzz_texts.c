#include "tests/fuzz/texts/texts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_addr(data, size);
	fuzz_ssh(data, size);
	fuzz_match(data, size);
	fuzz_cert_index(data, size);
	fuzz_ftrace_format(data, size);
	fuzz_probe_text(data, size);
	fuzz_relay_settings(data, size);
	fuzz_settings(data, size);
	fuzz_text_parse(data, size);
	fuzz_trace_config_load(data, size);
	fuzz_web(data, size);
	fuzz_words(data, size);
	return 0;
}
