#include "client/ftrace/events/kernel_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/address_line.h"

/* Longer lines are no symbol's: names have at most 511 characters. */
#define LINE_MAX_BYTES 640u
#define REACH          (UINT64_C(1) << 20)
/* Bounds what a strange file may cost; kernels have 50,000 to 250,000. */
#define SYMBOLS_MAX (1u << 21)

struct kernel_symbol {
	uint64_t address;
	uint32_t name; /* offset in names */
};

struct kernel_symbols {
	struct kernel_symbol *all; /* owned; sorted by kernel_symbols_end() */
	uint32_t n, room;
	char *names; /* owned; each ends with a NUL */
	uint32_t names_len, names_room;
	char line[LINE_MAX_BYTES]; /* the part of a line fed so far */
	size_t line_len;           /* LINE_MAX_BYTES: too long, passed over */
};

struct kernel_symbols *
kernel_symbols_new(void)
{
	return calloc(1, sizeof(struct kernel_symbols));
}

void
kernel_symbols_free(struct kernel_symbols *k)
{
	if (k == NULL)
		return;
	free(k->all);
	free(k->names);
	free(k);
}

/* False: no memory. */
static bool
make_room(struct kernel_symbols *k, size_t name_len)
{
	uint32_t room;
	void *p;

	if (k->n == k->room) {
		room = k->room == 0 ? 16384 : k->room * 2;
		if (room > SYMBOLS_MAX ||
		    (p = realloc(k->all, room * sizeof(k->all[0]))) == NULL)
			return false;
		k->all = p;
		k->room = room;
	}
	if (k->names_room - k->names_len <= name_len) {
		room = k->names_room == 0 ? 512 * 1024 : k->names_room * 2;
		if ((p = realloc(k->names, room)) == NULL)
			return false;
		k->names = p;
		k->names_room = room;
	}
	return true;
}

static bool
add(struct kernel_symbols *k, uint64_t address, const char *name, size_t len)
{
	if (!make_room(k, len))
		return false;
	k->all[k->n].address = address;
	k->all[k->n++].name = k->names_len;
	memcpy(k->names + k->names_len, name, len);
	k->names[k->names_len + len] = '\0';
	k->names_len += (uint32_t)len + 1;
	return true;
}

/* The line is terminated.  False: no memory. */
static bool
take_line(struct kernel_symbols *k)
{
	uint64_t address;
	const char *rest;
	size_t len;

	if ((rest = address_line(k->line, &address)) == NULL ||
	    address == 0 || rest[0] == '\0' || strchr("tTwW", rest[0]) == NULL ||
	    rest[1] != ' ')
		return true;
	len = strcspn(rest + 2, " \t");
	return len == 0 || add(k, address, rest + 2, len);
}

bool
kernel_symbols_feed(struct kernel_symbols *k, const char *text, size_t len)
{
	const char *end = text + len, *newline;
	size_t n;

	while (text < end) {
		newline = memchr(text, '\n', (size_t)(end - text));
		n = (size_t)((newline == NULL ? end : newline) - text);
		if (k->line_len + n < LINE_MAX_BYTES) {
			memcpy(k->line + k->line_len, text, n);
			k->line_len += n;
		} else {
			k->line_len = LINE_MAX_BYTES;
		}
		if (newline == NULL)
			return true;
		text = newline + 1;
		n = k->line_len;
		k->line_len = 0;
		if (n == LINE_MAX_BYTES)
			continue;
		k->line[n] = '\0';
		if (!take_line(k))
			return false;
	}
	return true;
}

static int
by_address(const void *a, const void *b)
{
	const struct kernel_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	/* The file's first of several names comes first. */
	return x->name < y->name ? -1 : x->name > y->name;
}

size_t
kernel_symbols_end(struct kernel_symbols *k)
{
	struct kernel_symbol *all;
	char *names;

	if (k->n == 0)
		return 0;
	qsort(k->all, k->n, sizeof(k->all[0]), by_address);
	if ((all = realloc(k->all, k->n * sizeof(all[0]))) != NULL) {
		k->all = all;
		k->room = k->n;
	}
	if ((names = realloc(k->names, k->names_len)) != NULL) {
		k->names = names;
		k->names_room = k->names_len;
	}
	return k->n;
}

const char *
kernel_symbols_find(const struct kernel_symbols *k, uint64_t address)
{
	size_t low = 0, high = k->n, middle;

	/* The first one above it. */
	while (low < high) {
		middle = low + (high - low) / 2;
		if (k->all[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address - k->all[low - 1].address >= REACH)
		return NULL;
	/* The first of several at one address. */
	for (low--; low > 0 && k->all[low - 1].address ==
	    k->all[low].address; low--)
		;
	return k->names + k->all[low].name;
}

size_t
kernel_symbols_bytes(const struct kernel_symbols *k)
{
	return sizeof(*k) + k->room * sizeof(k->all[0]) + k->names_room;
}
