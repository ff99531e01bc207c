/* Names in /proc/meminfo and /proc/vmstat, and their counters. */
#include "client/probes/sys_keys.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "protos/sys_stats_counters.pb-c.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * By value of MeminfoCounters.  Values from 34 on are of Android's kernels
 * only.
 */
static const char *const meminfo_names[] = {
	NULL, "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached",
	"SwapCached", "Active", "Inactive", "Active(anon)", "Inactive(anon)",
	"Active(file)", "Inactive(file)", "Unevictable", "Mlocked",
	"SwapTotal", "SwapFree", "Dirty", "Writeback", "AnonPages", "Mapped",
	"Shmem", "Slab", "SReclaimable", "SUnreclaim", "KernelStack",
	"PageTables", "CommitLimit", "Committed_AS", "VmallocTotal",
	"VmallocUsed", "VmallocChunk", "CmaTotal", "CmaFree",
};

/* VMSTAT_NR_FREE_PAGES is nr_free_pages, and so are all. */
#define VMSTAT_PREFIX "VMSTAT_"
#define NAME_MAX_BYTES 64

struct key {
	char name[NAME_MAX_BYTES];
	size_t len;
	int id;
};

struct sys_keys {
	size_t n;
	struct key keys[]; /* sorted by compare() */
};

static int
compare(const char *a, size_t alen, const char *b, size_t blen)
{
	if (alen != blen)
		return alen < blen ? -1 : 1;
	return memcmp(a, b, alen);
}

static int
compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	return compare(x->name, x->len, y->name, y->len);
}

static bool
is_wanted(int id, const int *wanted, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (wanted[i] == id)
			return true;
	return n == 0;
}

static struct sys_keys *
keys_new(size_t room)
{
	return calloc(1, sizeof(struct sys_keys) + room * sizeof(struct key));
}

static void
add(struct sys_keys *k, const char *name, int id)
{
	struct key *key = &k->keys[k->n++];

	key->len = strnlen(name, NAME_MAX_BYTES - 1);
	memcpy(key->name, name, key->len);
	key->id = id;
}

struct sys_keys *
sys_keys_meminfo(const int *wanted, size_t n)
{
	struct sys_keys *k;
	int i;

	if ((k = keys_new(COUNT(meminfo_names))) == NULL)
		return NULL;
	for (i = 1; i < (int)COUNT(meminfo_names); i++)
		if (is_wanted(i, wanted, n))
			add(k, meminfo_names[i], i);
	qsort(k->keys, k->n, sizeof(k->keys[0]), compare_keys);
	return k;
}

struct sys_keys *
sys_keys_vmstat(const int *wanted, size_t n)
{
	const ProtobufCEnumDescriptor *d =
	    &perfetto__protos__vmstat_counters__descriptor;
	char name[NAME_MAX_BYTES];
	struct sys_keys *k;
	size_t len;
	unsigned i;

	if ((k = keys_new(d->n_values)) == NULL)
		return NULL;
	for (i = 0; i < d->n_values; i++) {
		if (d->values[i].value == 0 ||
		    !is_wanted(d->values[i].value, wanted, n))
			continue;
		for (len = 0; len < sizeof(name) - 1; len++)
			if ((name[len] = (char)tolower((unsigned char)
			    d->values[i].name[strlen(VMSTAT_PREFIX) + len]))
			    == '\0')
				break;
		name[len] = '\0';
		add(k, name, d->values[i].value);
	}
	qsort(k->keys, k->n, sizeof(k->keys[0]), compare_keys);
	return k;
}

void
sys_keys_free(struct sys_keys *k)
{
	free(k);
}

int
sys_keys_find(const struct sys_keys *k, const char *name, size_t len)
{
	size_t low = 0, high = k->n, mid;
	int c;

	while (low < high) {
		mid = low + (high - low) / 2;
		c = compare(name, len, k->keys[mid].name, k->keys[mid].len);
		if (c == 0)
			return k->keys[mid].id;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return 0;
}
