#include "protos/message_copy.h"

#include <stdlib.h>

#include "protos/unpack.h"

ProtobufCMessage *
message_copy(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	ProtobufCMessage *copy;
	uint8_t *bytes;

	if ((bytes = malloc(len + 1)) == NULL)
		return NULL;
	protobuf_c_message_pack(m, bytes);
	copy = unpack_checked(m->descriptor, NULL, len, bytes);
	free(bytes);
	return copy;
}
