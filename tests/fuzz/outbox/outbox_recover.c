#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "relay/outbox/outbox.h"
#include "tests/fuzz/outbox/outbox.h"
#include "transport/base/log.h"
#include "transport/wire/pb_reader.h"

/*
 * Files that an earlier relay left, with bytes changed: it must start, and be
 * of use, whatever they hold.  The input is a list of changes: which file, where
 * and with what.
 */

#define MEMORY (1u << 20)
#define SPOOL  (1u << 20)
#define CHANGE 12u /* bytes of the input for one */
/* Of more, nothing is left to recover. */
#define CHANGES_MAX 64u

static char dir[64];
static int dirfd_;
static char spool[80];

static void
nothing(void *arg)
{
}

static struct outbox *
start(void)
{
	static const struct outbox_ops ops = { .ready = nothing,
		.overflow = nothing };
	struct outbox_setup s = { .state_dirfd = dirfd_,
		.memory_bytes = MEMORY, .spool_dir = spool,
		.spool_bytes = SPOOL, .synchronous = true, .ops = &ops };
	char err[256];

	return outbox_open(&s, err, sizeof(err));
}

static void
fill(struct outbox *o, uint8_t kind)
{
	struct outbox_block b;
	uint8_t *p;
	unsigned i;

	outbox_set_window(o, 1u << 20);
	for (i = 0; i < 60; i++) {
		p = outbox_reserve(o, i % 3 + 1, 20000, i % 7 != 0);
		if (p == NULL)
			abort();
		memset(p, kind, 20000);
		/* A chunk of writer 5: { 1: { 3: 7, 4: data } } */
		memcpy(p, "\x0a\x9a\x9c\x01\x18\x07\x22\x94\x9c\x01", 10);
		p[10] = (uint8_t)i;
		p[11] = p[12] = p[13] = 0;
		p[14] = 5;
		p[15] = 0;
		p[16] = 3;
		p[17] = kind & 12;
		outbox_commit(o, i % 3 + 1, 19998 + 0);
		outbox_put(o, i % 3 + 1, LINK_UP_TRIGGER, "t", 1, 0);
		if (i % 9 == 0 && outbox_next(o, &b) && i % 2 == 0 &&
		    outbox_acked(o, b.number) != 0)
			abort();
	}
}

static void
change(const char *name, const uint8_t *c)
{
	uint32_t at;
	struct stat st;
	int fd = open(name, O_RDWR);

	if (fd < 0)
		return;
	memcpy(&at, c + 1, 4);
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		/* Most that matters is in front. */
		at %= c[0] & 8 ? (uint32_t)st.st_size : 4096u;
		if (c[0] & 16)
			(void)!ftruncate(fd, at);
		else
			(void)!pwrite(fd, c + 5, 1 + (c[0] >> 5) % 7, (off_t)at);
	}
	close(fd);
}

static void
use(struct outbox *o)
{
	struct link_loss l[16];
	struct outbox_block b;
	struct outbox_state st;
	struct outbox_stats s;
	struct pb_reader r;
	struct pb_field f;
	uint64_t number;

	outbox_state(o, &st);
	outbox_set_window(o, 64u << 20);
	if (outbox_resume(o, st.last_acked) != 0)
		abort();
	number = st.last_acked;
	while (outbox_next(o, &b)) {
		if (b.number != ++number)
			abort();
		pb_init(&r, b.data, b.len);
		while (pb_next(&r, &f))
			;
		if (outbox_acked(o, b.number) != 0)
			abort();
	}
	fill(o, 3);
	outbox_stats(o, &s);
	outbox_reset(o, 4);
	while (outbox_take_old_losses(o, l, 16) > 0)
		;
}

static void
make_folders(void)
{
	log_init("fuzz", LOG_LEVEL_ERROR);
	snprintf(dir, sizeof(dir), "%s/fuzz-outbox-XXXXXX",
	    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (mkdtemp(dir) == NULL)
		abort();
	snprintf(spool, sizeof(spool), "%s/spool", dir);
	mkdir(spool, 0700);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
}

static void
remove_folders(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	(void)!system(command);
}

void
fuzz_outbox_recover(const uint8_t *data, size_t size)
{
	char name[160];
	struct outbox *o;
	unsigned i, n;

	if (dir[0] == '\0') {
		make_folders();
		atexit(remove_folders);
	}
	snprintf(name, sizeof(name), "%s/outbox", dir);
	unlink(name);
	if ((o = start()) == NULL)
		abort();
	fill(o, size > 0 ? data[0] : 0);
	outbox_close(o);
	for (n = 0; size >= CHANGE && n < CHANGES_MAX; n++) {
		snprintf(name, sizeof(name), "%s/outbox", dir);
		for (i = 1; i < 12 && (data[0] & 7) != 0; i++) {
			snprintf(name, sizeof(name), "%s/spool-%016x", spool,
			    i + (data[0] & 7) - 1);
			if (access(name, R_OK) == 0)
				break;
		}
		change(name, data);
		data += CHANGE;
		size -= CHANGE;
	}
	if ((o = start()) == NULL)
		abort();
	use(o);
	outbox_close(o);
}
