/*
 * tributaryd: the collector.
 */
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "protos/plain_text.h"
#include "service/front/activation.h"
#include "service/front/handover.h"
#include "service/process/daemon.h"
#include "service/process/options.h"
#include "service/process/sandbox_apply.h"
#include "service/process/upgrade.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/process/background.h"
#include "transport/process/heap_trimming.h"

enum { EXIT_COULD_NOT_START = 1 };

/* Everything is closed but the sockets. */
static int
upgrade(const struct successor *next, struct handover *h)
{
	char err[SETTINGS_ERROR_SIZE];

	upgrade_become(next, h, err, sizeof(err));
	log_error("the upgrade failed: %s", err);
	handover_done(h);
	return EXIT_COULD_NOT_START;
}

static int
serve(const struct settings *s, struct activation *a,
    const struct successor *next, bool background)
{
	char err[SETTINGS_ERROR_SIZE];
	int to_parent = -1;
	enum daemon_end end;
	struct handover h;
	struct daemon *d;
	pid_t pid;

	if (background && (pid = background_fork(&to_parent)) != 0)
		return pid < 0 ? EXIT_COULD_NOT_START :
		    background_wait(pid, to_parent, stdout);
	heap_init(s->io_threads);
	if ((d = daemon_new(s, a, next, err, sizeof(err))) == NULL) {
		log_error("%s", err);
		return EXIT_COULD_NOT_START;
	}
	if (sandbox_as_set(s, err, sizeof(err)) != 0) {
		log_error("%s", err);
		daemon_free(d);
		return EXIT_COULD_NOT_START;
	}
	if (daemon_start(d, err, sizeof(err)) != 0) {
		log_error("%s", err);
		daemon_free(d);
		return EXIT_COULD_NOT_START;
	}
	if (to_parent != -1)
		background_detach(to_parent);
	daemon_tell_ready(d);
	if ((end = daemon_run(d, &h)) == DAEMON_UNCLEAN)
		_exit(1); /* not daemon_free(): a thread still uses it */
	daemon_free(d);
	return end == DAEMON_UPGRADE ? upgrade(next, &h) : 0;
}

/*
 * The trial for a daemon that would execute this program: whether everything
 * can be opened, as far as that shows while that daemon serves.
 */
static int
try(const struct settings *s, struct activation *a)
{
	char err[SETTINGS_ERROR_SIZE];
	struct daemon *d;
	int rc;

	log_init("tributaryd", LOG_LEVEL_ERROR);
	if ((d = daemon_new(s, a, NULL, err, sizeof(err))) == NULL) {
		plain_printf(stderr, "%s\n", err);
		return EXIT_COULD_NOT_START;
	}
	if ((rc = sandbox_as_set(s, err, sizeof(err))) != 0)
		plain_printf(stderr, "%s\n", err);
	else
		puts("takes over");
	daemon_free(d);
	return rc == 0 ? 0 : EXIT_COULD_NOT_START;
}

int
main(int argc, char **argv)
{
	char err[SETTINGS_ERROR_SIZE];
	struct activation a;
	struct successor next;
	struct options o;
	struct settings s;
	int rc;

	log_init("tributaryd", LOG_LEVEL_INFO);
	rc = flags_answer(&options_flags, options_parse(&o, argc, argv, err,
	    sizeof(err)), err);
	if (rc >= 0)
		return rc;
	if (activation_from_environment(&a, err, sizeof(err)) != 0 ||
	    options_settings(&o, &a, &s, err, sizeof(err)) != 0) {
		/*
		 * Printed as it is: a message about a file has lines and a
		 * caret.
		 */
		plain_printf(stderr, "%s\n", err);
		return EXIT_COULD_NOT_START;
	}
	successor_init(&next, argc, argv);
	if (o.check_config && a.trial) {
		rc = try(&s, &a);
	} else if (o.check_config) {
		puts("OK");
		rc = 0;
	} else {
		log_init("tributaryd", s.log_level);
		log_never_wait();
		/* After an upgrade it is there already. */
		rc = serve(&s, &a, &next, o.background && !a.inherited);
	}
	activation_done(&a);
	successor_done(&next);
	settings_done(&s);
	return rc;
}
