/*
 * wire_text: messages without a schema, and programs, written as text.
 *
 * A message is a list of fields, NUMBER:VALUE with spaces between them.  A
 * value is a number (a varint; with i in front a fixed32, with l a fixed64),
 * 'bytes', or {a message}: "1:5 2:{1:i7 3:'name'}".  A test fails on anything
 * else.
 */
#ifndef TESTS_UNIT_SERVICE_PROTOVM_WIRE_TEXT_H
#define TESTS_UNIT_SERVICE_PROTOVM_WIRE_TEXT_H

#include "service/protovm/protovm.h"
#include "transport/wire/pb_writer.h"

/* Appends the message. */
void wire_text(const char *text, struct pb_writer *out);

/* A VmProgram in protobuf's text format; NULL if it is refused, with err. */
struct protovm_program *wire_text_program(const char *text, char *err,
    size_t err_size);

/* Sets the state, which the machine must take. */
void wire_text_load(struct protovm *vm, const char *state);
/* Applies a packet, which the machine sees in memory of its very size. */
enum protovm_verdict wire_text_apply(struct protovm *vm, const char *packet);
/* Fails the test unless the state has these bytes. */
void wire_text_expect(const struct protovm *vm, const char *state);

#endif /* TESTS_UNIT_SERVICE_PROTOVM_WIRE_TEXT_H */
