#include "client/ftrace/events/symbol_index.h"

#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/kernel_symbols.h"
#include "client/tracing/packet/packet.h"
#include "protos/fields.h"

#define SLOTS_MIN 256u

void
symbol_index_done(struct symbol_index *s)
{
	free(s->slots);
	free(s->addresses);
	memset(s, 0, sizeof(*s));
}

void
symbol_index_clear(struct symbol_index *s)
{
	if (s->n_slots > 0)
		memset(s->slots, 0, s->n_slots * sizeof(s->slots[0]));
	s->n = s->n_written = 0;
	s->goes_on = false;
}

/* The slot of an address, or the free one for it; there is one. */
static struct symbol_slot *
find(const struct symbol_index *s, uint64_t address)
{
	uint32_t mask = s->n_slots - 1, i;

	/* Fibonacci hashing; functions are aligned. */
	i = (uint32_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & mask;
	while (s->slots[i].number != 0 && s->slots[i].address != address)
		i = (i + 1) & mask;
	return &s->slots[i];
}

/* Twice as many slots, and half of that as addresses.  False: no memory. */
static bool
grow(struct symbol_index *s)
{
	struct symbol_index grown = *s;
	uint64_t *addresses;
	uint32_t i;

	grown.n_slots = s->n_slots == 0 ? SLOTS_MIN : s->n_slots * 2;
	addresses = realloc(s->addresses, grown.n_slots / 2 *
	    sizeof(addresses[0]));
	if (addresses == NULL)
		return false;
	s->addresses = grown.addresses = addresses;
	grown.slots = calloc(grown.n_slots, sizeof(grown.slots[0]));
	if (grown.slots == NULL)
		return false;
	for (i = 0; i < s->n; i++) {
		*find(&grown, addresses[i]) = (struct symbol_slot){
			.address = addresses[i], .number = i + 1 };
	}
	free(s->slots);
	*s = grown;
	return true;
}

uint32_t
symbol_index_add(struct symbol_index *s, uint64_t address)
{
	struct symbol_slot *slot;

	if (address == 0)
		return 0;
	if (LIKELY(s->n_slots > 0)) {
		slot = find(s, address);
		if (LIKELY(slot->number != 0))
			return slot->number;
	}
	if (s->n >= SYMBOL_INDEX_MAX ||
	    (s->n == s->n_slots / 2 && !grow(s))) {
		s->n_missed++;
		return 0;
	}
	slot = find(s, address);
	slot->address = address;
	s->addresses[s->n] = address;
	return slot->number = ++s->n;
}

void
symbol_index_write(struct symbol_index *s, const struct kernel_symbols *names,
    struct tributary_packet *packet)
{
	const char *name;
	bool began = false;

	if (s->n_written == s->n)
		return;
	if (!s->goes_on) {
		s->goes_on = true;
		tributary_packet_clears_state(packet);
	}
	for (; s->n_written < s->n; s->n_written++) {
		name = kernel_symbols_find(names, s->addresses[s->n_written]);
		if (name == NULL)
			continue;
		if (!began)
			packet_begin(packet, TracePacket_interned_data);
		began = true;
		packet_begin(packet, InternedData_kernel_symbols);
		packet_put_uint(packet, InternedString_iid, s->n_written + 1);
		tributary_put_string(packet, InternedString_str, name);
		packet_end(packet);
	}
	if (began)
		packet_end(packet);
}
