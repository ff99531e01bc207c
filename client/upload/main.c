/*
 * tributary-upload: sends the segments of an archive to object storage.
 */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/archive/postgres_url.h"
#include "client/text/progress.h"
#include "client/upload/s3/credentials.h"
#include "client/upload/s3/s3_http.h"
#include "client/upload/s3/s3_place.h"
#include "client/upload/store_read.h"
#include "client/upload/upload_options.h"
#include "client/upload/upload_report.h"
#include "client/upload/upload_settings.h"
#include "client/upload/uploader.h"
#include "protos/plain_text.h"
#include "transport/base/flags.h"
#include "transport/base/log.h"
#include "transport/process/sandbox.h"
#include "transport/process/sd_notify.h"

enum { EXIT_COULD_NOT = 1 };

static struct uploader_signals signals = { .wake = -1 };

static void
signal_handler(int number)
{
	int saved = errno;
	uint64_t one = 1;

	if (number == SIGHUP)
		signals.try_now = 1;
	else
		signals.stop = 1;
	/* Full: it wakes already. */
	if (write(signals.wake, &one, sizeof(one)) < 0)
		errno = saved;
}

static void
watch_signals(void)
{
	struct sigaction action = { .sa_handler = signal_handler };

	signals.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)sigaction(SIGHUP, &action, NULL);
	/* A second signal ends it at once. */
	action.sa_flags = (int)SA_RESETHAND;
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	action.sa_handler = SIG_IGN;
	action.sa_flags = 0;
	(void)sigaction(SIGPIPE, &action, NULL);
}

static void
received_cb(void *arg, uint64_t moved, uint64_t all)
{
	struct progress *p = arg;

	progress_expect(p, all);
	progress_show(p, moved);
}

/*
 * --get and --descriptions.  What goes to standard output is read by a program,
 * such as `tributary fetch`, which has its own line of progress.
 */
static int
read_store(const struct upload_options *o, const struct upload_settings *s)
{
	struct store_read r = {
		.place = &s->place,
		.min_retry_ms = s->min_retry_ms,
		.max_retry_ms = s->max_retry_ms,
		.stop = &signals.stop,
	};
	struct progress progress = { .what = NULL };
	struct credentials credentials = { 0 };
	struct s3_http_setup setup = {
		.place = &s->place,
		.credentials = &credentials,
		.ca_file = s->ca_file,
		.max_bytes_per_s = s->max_kb_per_s * 1024,
		.stall_ms = s->stall_s * 1000ull,
		.stop = &signals.stop,
		.tick = received_cb,
		.tick_arg = &progress,
	};
	char err[UPLOAD_ERROR_SIZE] = "no memory";
	int rc = -1;

	if (o->command == UPLOAD_GET && strcmp(o->file, "-") != 0)
		progress_begin_bytes(&progress, "received", 0);
	if (credentials_load(&credentials, s->credentials_file, err,
		sizeof(err)) == 0 &&
	    (r.http = s3_http_new(&setup)) != NULL)
		rc = o->command == UPLOAD_GET ? store_read_object(&r, o->get,
		    o->sha256, o->file, err, sizeof(err)) :
		    store_read_descriptions(&r, stdout, err, sizeof(err));
	progress_clear(&progress);
	if (rc != 0)
		log_error("%s", err);
	s3_http_free(r.http);
	credentials_done(&credentials);
	return rc == 0 ? 0 : EXIT_COULD_NOT;
}

static void
load_resolver(const struct s3_place *place)
{
	const char *host = strstr(place->base, "://") + 3;
	char *name = strndup(host, strcspn(host, ":/"));

	if (name != NULL)
		sandbox_load_resolver(name);
	free(name);
}

static int
confine(const struct upload_settings *s, char *err, size_t err_size)
{
	char *host = NULL;
	bool filtered;

	if (sandbox_memory(err, err_size) != 0)
		return -1;
	if (!s->seccomp)
		return 0;
	load_resolver(&s->place);
	if (s->catalog != NULL && (host = postgres_url_host(s->catalog)) !=
	    NULL && host[0] != '\0')
		sandbox_load_resolver(host);
	free(host);
	return sandbox_system_calls(SANDBOX_INTERNET_AND_DATABASE, &filtered,
	    err, err_size);
}

static int
send_archive(const struct upload_options *o, const struct upload_settings *s)
{
	char err[UPLOAD_ERROR_SIZE];
	struct uploader *u = uploader_new(s, &signals, err, sizeof(err));
	bool done = true;

	if (u == NULL) {
		log_error("%s", err);
		return EXIT_COULD_NOT;
	}
	if (confine(s, err, sizeof(err)) != 0) {
		log_error("%s", err);
		uploader_free(u);
		return EXIT_COULD_NOT;
	}
	(void)sd_notify_send("READY=1");
	if (o->command == UPLOAD_ONCE)
		done = uploader_run_once(u);
	else
		uploader_run(u);
	(void)sd_notify_send("STOPPING=1");
	uploader_free(u);
	return done ? 0 : EXIT_COULD_NOT;
}

static int
run(const struct upload_options *o, const struct upload_settings *s)
{
	switch (o->command) {
	case UPLOAD_CHECK:
		puts("OK");
		return 0;
	case UPLOAD_GET:
	case UPLOAD_DESCRIPTIONS:
		return read_store(o, s);
	case UPLOAD_STATUS:
		return upload_report_show(s->archive_dir, o->json);
	case UPLOAD_SERVE:
	case UPLOAD_ONCE:
		break;
	}
	return send_archive(o, s);
}

int
main(int argc, char **argv)
{
	char err[UPLOAD_ERROR_SIZE];
	struct upload_settings s;
	struct upload_options o;
	enum flags_verdict verdict;
	int rc;

	log_init("tributary-upload", LOG_LEVEL_INFO);
	verdict = upload_options_parse(&o, argc, argv, err, sizeof(err));
	rc = flags_answer(&upload_flags, verdict, err);
	if (rc >= 0)
		return rc;
	if (upload_options_settings(&o, &s, err, sizeof(err)) != 0) {
		/* A message about a file has lines and a caret. */
		plain_printf(stderr, "%s\n", err);
		return EXIT_COULD_NOT;
	}
	log_init("tributary-upload", s.log_level);
	watch_signals();
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		log_error("libcurl does not start");
		rc = EXIT_COULD_NOT;
	} else {
		rc = run(&o, &s);
		curl_global_cleanup();
	}
	upload_settings_done(&s);
	return rc;
}
