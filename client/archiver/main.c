/*
 * tributary-archiver: keeps the archive of segments in a folder.
 */
#include <stdio.h>

#include "client/archiver/archiver.h"
#include "client/archiver/options.h"
#include "client/archiver/status.h"
#include "protos/plain_text.h"
#include "transport/base/log.h"

static int
run(const struct archiver_options *o, struct archiver_settings *s)
{
	if (o->check) {
		puts("OK");
		return 0;
	}
	if (o->status)
		return status_show(s->folder, o->json);
	log_init("tributary-archiver", s->log_level);
	log_never_wait();
	return archiver_run(o, s);
}

int
main(int argc, char **argv)
{
	char err[ARCHIVER_ERROR_SIZE];
	struct archiver_settings s;
	struct archiver_options o;
	int rc;

	log_init("tributary-archiver", LOG_LEVEL_INFO);
	rc = flags_answer(&archiver_flags, archiver_options_parse(&o, argc,
	    argv, err, sizeof(err)), err);
	if (rc >= 0)
		return rc;
	if (archiver_options_settings(&o, &s, err, sizeof(err)) != 0) {
		/*
		 * Printed unchanged: a message about a file has lines and a
		 * caret.
		 */
		plain_printf(stderr, "%s\n", err);
		return 1;
	}
	rc = run(&o, &s);
	archiver_settings_done(&s);
	return rc;
}
