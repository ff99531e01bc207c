/*
 * unpack: the guard in front of every generated unpack function.
 *
 * protobuf-c recurses into nested messages, and merges a message field that
 * is given twice, without bound: a frame of 128 KiB can nest deeper than the
 * stack, or ask for gigabytes of copying.  The generated code is compiled to
 * call unpack_checked() in the place of protobuf_c_message_unpack(), so the
 * foo__unpack() functions are safe on bytes from any peer.  Code that wants
 * to unpack by descriptor (nested messages have no function of their own)
 * calls unpack_checked() itself.
 */
#ifndef PROTOS_UNPACK_H
#define PROTOS_UNPACK_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Nesting that is accepted; what Perfetto's own readers accept. */
#define UNPACK_MAX_DEPTH 100

/*
 * Repetitions of singular message fields that are accepted in one message,
 * nested ones included.  Encoders never repeat one, but a reply that came in
 * parts does when the parts are concatenated.
 */
#define UNPACK_MAX_MERGES 1024

/*
 * As protobuf_c_message_unpack(): NULL when the bytes are no such message, go
 * over a limit, or memory is short.  The caller frees the message by
 * protobuf_c_message_free_unpacked() with the same allocator (NULL: malloc).
 */
ProtobufCMessage *unpack_checked(const ProtobufCMessageDescriptor *d,
    ProtobufCAllocator *allocator, size_t len, const uint8_t *data)
    __attribute__((__warn_unused_result__));

#endif /* PROTOS_UNPACK_H */
