#include "client/archiver/archiver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/archive/archive_path.h"
#include "client/archive/index/archive_files.h"
#include "client/archiver/folder_watch.h"
#include "client/archiver/keeper.h"
#include "client/archiver/own_folder.h"
#include "client/archiver/status.h"
#include "protos/plain_text.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/process/sd_notify.h"

/* Folders that are not watched are looked through so often. */
#define UNWATCHED_MS 60000u

struct archiver {
	const struct archiver_options *options; /* borrowed */
	char *folder;                           /* owned */
	struct own_folder *own;
	struct loop *loop;
	struct keeper *keeper;
	struct folder_watch *watch;
	struct loop_timer *watchdog; /* NULL: systemd has none for us */
	struct loop_timer *unwatched;
	uint64_t started_ms;
	bool stopping;
};

/* ---- signals ---- */

static void
stop_cb(void *arg)
{
	struct archiver *a = arg;

	if (a->stopping) {
		log_warn("a second signal: leaving at once");
		_exit(1);
	}
	a->stopping = true;
	log_info("stopping");
	(void)sd_notify_send("STOPPING=1");
	loop_stop(a->loop);
}

static void
hup_cb(void *arg)
{
	struct archiver *a = arg;
	struct archiver_settings s;
	char err[ARCHIVER_ERROR_SIZE];

	if (a->options->config == NULL) {
		log_warn("SIGHUP: there are no settings to be read again: "
		    "start with --config");
		return;
	}
	if (archiver_options_settings(a->options, &s, err, sizeof(err)) != 0) {
		log_error("SIGHUP: the settings stay as they were");
		plain_printf(stderr, "%s\n", err);
		return;
	}
	if (strcmp(s.folder, a->folder) != 0)
		log_warn("SIGHUP: archive_dir is another one now: start the "
		    "archiver anew for it; here it is %s", a->folder);
	log_info("SIGHUP: the settings were read again");
	keeper_set(a->keeper, &s);
	archiver_settings_done(&s);
}

/* ---- what happens meanwhile ---- */

static void
changed_cb(const char *path, bool is_folder, void *arg)
{
	struct archiver *a = arg;

	keeper_look(a->keeper, path, is_folder);
}

static void
watchdog_cb(void *arg)
{
	(void)sd_notify_send("WATCHDOG=1");
}

static void
unwatched_cb(void *arg)
{
	struct archiver *a = arg;

	if (folder_watch_unwatched(a->watch) == 0)
		return;
	folder_watch_again(a->watch);
	keeper_look(a->keeper, "", true);
}

static size_t
answer_cb(void *arg, uint8_t *buf)
{
	struct archiver *a = arg;
	struct keeper_view view;
	struct status_facts facts = {
		.folder = a->folder,
		.running_ms = loop_now_ms() - a->started_ms,
		.to_look_at = keeper_waiting(a->keeper),
		.unwatched = folder_watch_unwatched(a->watch),
	};

	keeper_view(a->keeper, &view);
	return status_make(&facts, &view, buf, OWN_FOLDER_ANSWER_MAX);
}

/* ---- start and end ---- */

static int
start_loop(struct archiver *a)
{
	uint64_t watchdog_ms = sd_notify_watchdog_usec() / 2000;

	if ((a->loop = loop_new()) == NULL ||
	    loop_on_signal(a->loop, SIGTERM, stop_cb, a) != 0 ||
	    loop_on_signal(a->loop, SIGINT, stop_cb, a) != 0 ||
	    loop_on_signal(a->loop, SIGHUP, hup_cb, a) != 0)
		return -1;
	a->unwatched = loop_timer_new(a->loop, unwatched_cb, a);
	if (a->unwatched == NULL)
		return -1;
	loop_timer_set(a->unwatched, UNWATCHED_MS, 1);
	if (watchdog_ms == 0)
		return 0;
	if ((a->watchdog = loop_timer_new(a->loop, watchdog_cb, a)) == NULL)
		return -1;
	loop_timer_set(a->watchdog, watchdog_ms, 1);
	return 0;
}

/* The watch comes before the first look, so that nothing is missed between. */
static int
start(struct archiver *a, struct archiver_settings *settings, char *err,
    size_t err_size)
{
	snprintf(err, err_size, "no memory");
	if ((a->folder = strdup(settings->folder)) == NULL)
		return -1;
	if ((a->own = own_folder_open(a->folder, err, err_size)) == NULL)
		return -1;
	snprintf(err, err_size, "no memory");
	if (start_loop(a) != 0)
		return -1;
	a->keeper = keeper_new(own_folder_fd(a->own), settings, err, err_size);
	if (a->keeper == NULL)
		return -1;
	a->watch = folder_watch_new(&(struct folder_watch_setup){
	    .loop = a->loop, .root = a->folder, .is_meant = archive_path_is_segment,
	    .changed = changed_cb, .arg = a }, err, err_size);
	if (a->watch == NULL ||
	    own_folder_serve(a->own, a->loop, answer_cb, a, err,
		err_size) != 0)
		return -1;
	if (keeper_start(a->keeper) == 0)
		return 0;
	snprintf(err, err_size, "cannot start a thread: %s", strerror(errno));
	return -1;
}

static void
end(struct archiver *a)
{
	/* The thread asks nothing of the loop. */
	keeper_free(a->keeper);
	folder_watch_free(a->watch);
	loop_timer_free(a->watchdog);
	loop_timer_free(a->unwatched);
	own_folder_close(a->own);
	if (a->loop != NULL)
		loop_free(a->loop);
	free(a->folder);
}

int
archiver_run(const struct archiver_options *o,
    struct archiver_settings *settings)
{
	struct archiver a = {
		.options = o,
		.started_ms = loop_now_ms(),
	};
	char err[ARCHIVER_ERROR_SIZE];
	int status = 1;

	if (start(&a, settings, err, sizeof(err)) != 0) {
		log_error("%s", err);
	} else {
		log_info("keeping the archive %s", a.folder);
		(void)sd_notify_send("READY=1");
		notify_fd_from_env("TRIBUTARY_ARCHIVER_NOTIFY_FD");
		loop_run(a.loop);
		log_info("stopped");
		status = 0;
	}
	end(&a);
	return status;
}
