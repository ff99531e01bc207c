/* message_copy: a copy of a message, all that it points to included. */
#ifndef PROTOS_MESSAGE_COPY_H
#define PROTOS_MESSAGE_COPY_H

#include <protobuf-c/protobuf-c.h>

/*
 * The caller frees it by protobuf_c_message_free_unpacked(m, NULL).  NULL: no
 * memory.
 */
ProtobufCMessage *message_copy(const ProtobufCMessage *m)
    __attribute__((__warn_unused_result__));

#endif /* PROTOS_MESSAGE_COPY_H */
