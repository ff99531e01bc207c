/*
 * bundle_fixture: a bundle of events that a test makes from records of the real
 * kernel's formats, and reads back by protobuf-c.
 */
#ifndef TESTS_UNIT_CLIENT_FTRACE_EVENTS_BUNDLE_FIXTURE_H
#define TESTS_UNIT_CLIENT_FTRACE_EVENTS_BUNDLE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/ftrace/format/event_format.h"
#include "client/tracing/packet/packet.h"
#include "protos/ftrace_bundle.pb-c.h"
#include "real_kernel.h"

/* The thread of each record. */
#define TID 4242

extern struct real_kernel *kernel;
extern struct ftrace_bundle bundle;
extern struct tributary_packet packet;
extern const struct event_format *format; /* of the record */
extern uint8_t record[512];
/* The bundle, once finish() has been called. */
extern Perfetto__Protos__FtraceEventBundle *read_back;

/* A bundle of processor 3 has begun.  The folder is FTRACE_DATA's. */
void bundle_fixture_begin(enum event_plan_form generic, bool compact);
/* Another bundle, in another packet, after finish(). */
void bundle_fixture_begin_again(void);
void bundle_fixture_done(void);

/* A record of this event, all zeros but for its thread. */
void new_record(const char *name);
/* v's low bytes, as many as the kernel's field has. */
void set(const char *field, uint64_t v);
void set_text(const char *field, const char *text);
/* Text behind the fields, found by a __data_loc; returns the record's length. */
size_t set_located(const char *field, const char *text);

/* Adds the record's first len bytes. */
enum translate_verdict add_at(uint64_t time, size_t len);
Perfetto__Protos__FtraceEventBundle *finish(void);

#endif /* TESTS_UNIT_CLIENT_FTRACE_EVENTS_BUNDLE_FIXTURE_H */
