/*
 * tributary-relay: carries the producers of a machine to a collector.
 */
#include <stdio.h>
#include <sys/types.h>

#include "protos/plain_text.h"
#include "relay/daemon/daemon.h"
#include "relay/daemon/options.h"
#include "relay/daemon/stdio_bridge.h"
#include "relay/settings/settings.h"
#include "relay/status/status.h"
#include "transport/base/flags.h"
#include "transport/base/log.h"
#include "transport/process/background.h"
#include "transport/process/heap_trimming.h"

enum { EXIT_COULD_NOT_START = 1 };

/* to_parent: of background_fork(), or -1. */
static int
serve(const struct relay_settings *s, bool ends_idle, int to_parent)
{
	char err[RELAY_SETTINGS_ERROR_SIZE];
	struct relay_daemon *d;

	log_init("tributary-relay", (enum log_level)s->log_level);
	log_never_wait();
	heap_init(0);
	if ((d = relay_daemon_new(s, ends_idle, err, sizeof(err))) == NULL) {
		log_error("%s", err);
		return EXIT_COULD_NOT_START;
	}
	if (to_parent >= 0)
		background_detach(to_parent);
	relay_daemon_tell_ready();
	relay_daemon_run(d);
	relay_daemon_free(d);
	return 0;
}

static int
serve_in_background(const struct relay_settings *s)
{
	pid_t pid;
	int fd;

	if ((pid = background_fork(&fd)) < 0)
		return EXIT_COULD_NOT_START;
	return pid == 0 ? serve(s, false, fd) : background_wait(pid, fd, stdout);
}

static int
run(const struct relay_options *o, struct relay_settings *s)
{
	switch (o->command) {
	case RELAY_CHECK:
		puts("OK");
		return 0;
	case RELAY_STATUS:
		return status_show(s, o->state_dir != NULL,
		    o->json ? STATUS_JSON : STATUS_TEXT);
	case RELAY_METRICS:
		return status_show(s, o->state_dir != NULL, STATUS_METRICS);
	case RELAY_STDIO:
		return stdio_bridge_run(s, serve);
	case RELAY_SERVE:
		break;
	case RELAY_HELP:
	case RELAY_VERSION:
		return 0; /* main() has done it */
	}
	return o->background ? serve_in_background(s) : serve(s, false, -1);
}

int
main(int argc, char **argv)
{
	char err[RELAY_SETTINGS_ERROR_SIZE];
	struct relay_settings s;
	struct relay_options o;
	int rc;

	log_init("tributary-relay", LOG_LEVEL_INFO);
	if (relay_options_parse(&o, argc, argv, err, sizeof(err)) != 0)
		return flags_refuse(&relay_options_flags, err);
	rc = flags_answer(&relay_options_flags,
	    o.command == RELAY_HELP ? FLAGS_HELP :
	    o.command == RELAY_VERSION ? FLAGS_VERSION : FLAGS_RUN, err);
	if (rc >= 0)
		return rc;
	if (relay_options_settings(&o, &s, err, sizeof(err)) != 0) {
		/*
		 * Printed unchanged: a message about a file has lines and a
		 * caret.
		 */
		plain_printf(stderr, "%s\n", err);
		return EXIT_COULD_NOT_START;
	}
	rc = run(&o, &s);
	relay_settings_done(&s);
	return rc;
}
