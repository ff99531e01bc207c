/*
 * Bytes of a peer as messages: what passes the guard unpacks, prints and
 * packs, and packed it is the same message again.
 * They are read as each of several types.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/consumer_port.pb-c.h"
#include "protos/ipc.pb-c.h"
#include "protos/producer_port.pb-c.h"
#include "protos/relay_port.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "protos/text_print.h"
#include "protos/trace_packet.pb-c.h"
#include "protos/unpack.h"
#include "tests/fuzz/messages/messages.h"
#include "tests/unit/protos/print_string.h"

static const ProtobufCMessageDescriptor *const types[] = {
	&perfetto__protos__ipcframe__descriptor,
	&perfetto__protos__enable_tracing_request__descriptor,
	&perfetto__protos__register_data_source_request__descriptor,
	&perfetto__protos__get_async_command_response__descriptor,
	&perfetto__protos__query_service_state_response__descriptor,
	&perfetto__protos__init_relay_request__descriptor,
	&perfetto__protos__trace_packet__descriptor,
};

/* Printed, it is text; with unknown fields the text need not read back. */
static void
check_text(const ProtobufCMessage *m)
{
	ProtobufCMessage *again;
	char *s;

	if ((s = print_string(m)) == NULL)
		abort();
	again = text_parse_message(m->descriptor, s, strlen(s), NULL);
	if (again != NULL)
		protobuf_c_message_free_unpacked(again, NULL);
	free(s);
}

static void
unpack_as(const ProtobufCMessageDescriptor *d, const uint8_t *data, size_t size)
{
	ProtobufCMessage *m, *again;
	uint8_t *bytes;
	size_t len;

	if ((m = unpack_checked(d, NULL, size, data)) == NULL)
		return;
	check_text(m);
	len = protobuf_c_message_get_packed_size(m);
	if ((bytes = malloc(len + 1)) == NULL ||
	    protobuf_c_message_pack(m, bytes) != len ||
	    (again = unpack_checked(d, NULL, len, bytes)) == NULL ||
	    protobuf_c_message_get_packed_size(again) != len)
		abort();
	protobuf_c_message_free_unpacked(again, NULL);
	protobuf_c_message_free_unpacked(m, NULL);
	free(bytes);
}

void
fuzz_unpack(const uint8_t *data, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		unpack_as(types[i], data, size);
}
