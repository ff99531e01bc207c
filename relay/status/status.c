#include "relay/status/status.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protos/json_out.h"
#include "protos/plain_text.h"
#include "protos/relay_report.pb-c.h"
#include "relay/settings/settings.h"
#include "relay/state/state_dir.h"
#include "transport/metrics/metrics.h"
#include "transport/metrics/relay_metrics.h"

/* A relay that works answers within a turn of its loop. */
#define ANSWER_MS  5000
#define ANSWER_MAX (16u << 20)

/* State folder of a relay that the system started. */
#define SYSTEM_STATE_DIR "/run/tributary-relay"

static int
complain_of(const char *state_dir, int error)
{
	if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR)
		plain_printf(stderr, "tributary-relay: no relay runs here: no "
		    "program answers at %s/" STATE_DIR_CONTROL "; one that was "
		    "started with another --state-dir, or by another user, is "
		    "found with --state-dir\n", state_dir);
	else if (error == EACCES)
		plain_printf(stderr, "tributary-relay: the state folder %s is "
		    "another user's: ask as that user, or as root\n",
		    state_dir);
	else
		plain_printf(stderr, "tributary-relay: %s/" STATE_DIR_CONTROL
		    ": %s\n", state_dir, strerror(error));
	return 1;
}

/*
 * Connects to the relay of the settings' state folder, or, unless a flag named
 * the folder, of the system's.  -1: neither answers, which was printed.
 */
static int
find_relay(const struct relay_settings *s, bool named)
{
	int fd, error, other;

	fd = state_dir_connect(s->state_dir, STATE_DIR_CONTROL, &error);
	if (fd >= 0)
		return fd;
	if (!named && strcmp(s->state_dir, SYSTEM_STATE_DIR) != 0) {
		fd = state_dir_connect(SYSTEM_STATE_DIR, STATE_DIR_CONTROL,
		    &other);
		if (fd >= 0)
			return fd;
		if (other == EACCES)
			return -complain_of(SYSTEM_STATE_DIR, other);
	}
	return -complain_of(s->state_dir, error);
}

/* All until the end of the stream.  NULL: said why. */
static uint8_t *
read_answer(int fd, size_t *len)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t *all = NULL, *grown;
	size_t n = 0, room = 0;
	ssize_t got;

	for (;;) {
		if (poll(&p, 1, ANSWER_MS) == 0) {
			fprintf(stderr, "tributary-relay: the relay does not "
			    "answer\n");
			break;
		}
		if (n == room && room < ANSWER_MAX) {
			room += 65536 + room / 2;
			if ((grown = realloc(all, room)) == NULL)
				break;
			all = grown;
		}
		got = read(fd, all + n, room - n);
		if (got == 0) {
			*len = n;
			return all;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			fprintf(stderr, "tributary-relay: reading the relay's "
			    "answer: %s\n", strerror(errno));
			break;
		}
		n += (size_t)got;
	}
	free(all);
	return NULL;
}

static void
show(const Tributary__RelayReport *r, enum status_form form)
{
	const struct metrics_out m = { stdout, METRICS_PROMETHEUS };
	struct json_out j = { .out = stdout };

	switch (form) {
	case STATUS_TEXT:
		status_print(stdout, r);
		break;
	case STATUS_JSON:
		json_message(&j, NULL, &r->base);
		putchar('\n');
		break;
	case STATUS_METRICS:
		relay_metrics_print_own(&m, r);
		break;
	}
}

int
status_show(const struct relay_settings *s, bool named, enum status_form form)
{
	Tributary__RelayReport *r = NULL;
	uint8_t *answer;
	size_t len = 0;
	int fd;

	if ((fd = find_relay(s, named)) < 0)
		return 1;
	answer = read_answer(fd, &len);
	close(fd);
	if (answer == NULL)
		return 1;
	if (len > 0)
		r = tributary__relay_report__unpack(NULL, len, answer);
	free(answer);
	if (r == NULL) {
		fprintf(stderr, "tributary-relay: the relay's answer makes no "
		    "sense; it is perhaps of another version\n");
		return 1;
	}
	show(r, form);
	tributary__relay_report__free_unpacked(r, NULL);
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return 0;
	fprintf(stderr, "tributary-relay: standard output: %s\n",
	    strerror(errno));
	return 1;
}
