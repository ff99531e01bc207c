#include "tests/fuzz/messages/messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_pb_reader(data, size);
	fuzz_unpack(data, size);
	fuzz_link_frame(data, size);
	fuzz_link_loss(data, size);
	fuzz_link_clock(data, size);
	fuzz_link_unpack(data, size);
	fuzz_link_zstd(data, size);
	fuzz_clock_exchange(data, size);
	fuzz_packet_boundary(data, size);
	fuzz_packet_check(data, size);
	fuzz_certificate(data, size);
	fuzz_filter(data, size);
	fuzz_printed(data, size);
	return 0;
}
