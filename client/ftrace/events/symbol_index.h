/*
 * symbol_index: numbers that stand for the kernel's addresses in a session's
 * events, from 1 on, so that a trace does not tell where the kernel lies in
 * memory.  The names of functions among them are interned data of the bundles'
 * sequence.
 *
 * One for a session; each bundle writes names that came up in it.
 */
#ifndef CLIENT_FTRACE_EVENTS_SYMBOL_INDEX_H
#define CLIENT_FTRACE_EVENTS_SYMBOL_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_symbols;
struct tributary_packet;

/* Addresses that are told apart until the index begins anew. */
#define SYMBOL_INDEX_MAX (1u << 20)

struct symbol_slot {
	uint64_t address;
	uint32_t number; /* 0: free */
};

struct symbol_index {
	struct symbol_slot *slots; /* owned */
	uint32_t n_slots;          /* a power of two, or 0 */
	uint64_t *addresses;       /* owned; of number i + 1 */
	uint32_t n;
	uint32_t n_written; /* those whose names have been written */
	bool goes_on; /* the sequence's state was begun by a packet before */
	uint64_t n_missed;  /* addresses that got no number; they are 0 */
};

/* Zero-initialised is ready to use. */
void symbol_index_done(struct symbol_index *s);
/* Begins anew, and so does the sequence's state in the next bundle. */
void symbol_index_clear(struct symbol_index *s);

/* The number of an address; 0 for address 0, or without memory. */
uint32_t symbol_index_add(struct symbol_index *s, uint64_t address);

/*
 * Appends to a TracePacket, outside of any message in it, the interned data of
 * names that were not written yet; where these are the first addresses, it
 * clears the sequence's incremental state.  Addresses that lie in no function
 * get no name.  Without new addresses the packet is left as it is.
 */
void symbol_index_write(struct symbol_index *s,
    const struct kernel_symbols *names, struct tributary_packet *packet);

#endif /* CLIENT_FTRACE_EVENTS_SYMBOL_INDEX_H */
