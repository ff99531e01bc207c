/*
 * real_kernel: formats and pages of Linux 6.1, as tracefs gave them, for tests,
 * benchmarks and fuzzers.  Ends the program where something is missing.
 */
#ifndef TESTS_UNIT_CLIENT_FTRACE_EVENTS_REAL_KERNEL_H
#define TESTS_UNIT_CLIENT_FTRACE_EVENTS_REAL_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/events/ftrace_bundle.h"
#include "client/ftrace/events/pid_notes.h"
#include "client/ftrace/events/symbol_index.h"
#include "client/ftrace/page/page_reader.h"

#define REAL_PAGE 4096u
#define REAL_IDS  4096u

struct real_kernel {
	struct event_format *formats[REAL_IDS]; /* by id; or NULL */
	struct event_plan *plans[REAL_IDS];
	struct pid_notes pids;
	struct symbol_index symbols;
	struct printk_strings *strings;
	struct page_layout layout;
};

/* folder has a file `formats`: "@@ GROUP" before each of tracefs' files. */
struct real_kernel *real_kernel_new(const char *folder,
    enum event_plan_form generic);
void real_kernel_free(struct real_kernel *k);

/* The plan for an event of the folder, by name. */
const struct event_plan *real_plan(const struct real_kernel *k,
    const char *name);
const struct event_format *real_format(const struct real_kernel *k,
    const char *name);
struct translate_env real_env(struct real_kernel *k);

/* A file of the folder; the caller frees it.  *len is a multiple of pages. */
uint8_t *real_pages(const char *folder, const char *name, size_t *len);
/*
 * Adds the records of a page of 4096 bytes to a bundle that has begun, and
 * returns how many were EVENT_DONE; those of events without a plan are passed
 * over.
 */
unsigned real_page_add(struct real_kernel *k, struct ftrace_bundle *b,
    const uint8_t *page);

#endif /* TESTS_UNIT_CLIENT_FTRACE_EVENTS_REAL_KERNEL_H */
