/*
 * tributary-web: a page about a collector, and its numbers for Prometheus.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/archive/postgres_url.h"
#include "client/web/web_options.h"
#include "client/web/web_server.h"
#include "client/web/web_source.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/process/fd_limit.h"
#include "transport/process/sandbox.h"
#include "transport/process/sd_notify.h"

#define LOOK_MS 2000u

struct program {
	struct web_options options;
	struct loop *loop;
	struct loop_timer *look; /* at certificates and the token */
	struct web_source *source;
	struct web_server *server;
};

static void
stop_cb(void *arg)
{
	loop_stop(arg);
}

static void
published_cb(void *arg)
{
	struct program *p = arg;

	web_server_wake(p->server);
}

static void
look_cb(void *arg)
{
	struct program *p = arg;

	web_server_look(p->server, WEB_LOOK_WHETHER_CHANGED);
}

static void
hup_cb(void *arg)
{
	struct program *p = arg;

	web_server_look(p->server, WEB_LOOK_AND_TELL);
}

/* Has files that change read again. */
static int
watch(struct program *p, char *err, size_t err_size)
{
	const struct web_options *o = &p->options;

	p->look = loop_timer_new(p->loop, look_cb, p);
	if (p->look == NULL || loop_on_signal(p->loop, SIGHUP, hup_cb, p) != 0)
		return FAILURE(err, err_size, "no memory");
	if (o->https_cert != NULL || o->token_file != NULL)
		loop_timer_set(p->look, LOOK_MS, 1);
	return 0;
}

/* Has Perfetto's UI fetch the file; the browser's connection waits for us. */
static void
show(struct program *p)
{
	const struct web_options *o = &p->options;
	char *address;

	if (asprintf(&address, "%s/#!/?url=%s%s", o->ui,
	    web_server_url(p->server), o->file.name) < 0)
		return;
	printf("%s\n", address);
	fflush(stdout);
	if (o->no_browser || !web_open_browser(address))
		fprintf(stderr, "Open this address in a browser; Ctrl-C ends "
		    "this.\n");
	free(address);
}

/* Once it listens. */
static int
confine(const struct web_options *o, char *err, size_t err_size)
{
	enum sandbox_also also = SANDBOX_NOTHING_ELSE;
	char *host = NULL;
	bool filtered;

	if (sandbox_memory(err, err_size) != 0)
		return -1;
	if (o->no_seccomp)
		return 0;
	if (o->open)
		return sandbox_system_calls(also, &filtered, err, err_size);
	if (o->catalog != NULL && (host = postgres_url_host(o->catalog)) !=
	    NULL && host[0] != '\0') {
		sandbox_load_resolver(host);
		also = SANDBOX_INTERNET;
	}
	free(host);
	switch (o->collector.kind) {
	case ADDR_SSH:
		log_warn("system calls are not confined, as ssh has to be "
		    "started to reach the collector");
		return 0;
	case ADDR_TCP:
	case ADDR_TLS:
		sandbox_load_resolver(o->collector.host);
		also = SANDBOX_INTERNET;
		break;
	case ADDR_VSOCK:
		also = SANDBOX_INTERNET;
		break;
	case ADDR_UNIX:
		break;
	}
	return sandbox_system_calls(also, &filtered, err, err_size);
}

static int
start(struct program *p, char *err, size_t err_size)
{
	struct web_options *o = &p->options;

	if (web_options_check(o, err, err_size) != 0)
		return -1;
	fd_limit_raise();
	snprintf(err, err_size, "no memory");
	if ((p->loop = loop_new()) == NULL ||
	    loop_on_signal(p->loop, SIGTERM, stop_cb, p->loop) != 0 ||
	    loop_on_signal(p->loop, SIGINT, stop_cb, p->loop) != 0)
		return -1;
	if (!o->open) {
		p->source = web_source_new(p->loop, &o->collector,
		    &o->line.how, published_cb, p);
		if (p->source == NULL)
			return -1;
	}
	p->server = web_server_new(p->loop, o, p->source, err, err_size);
	if (p->server == NULL || watch(p, err, err_size) != 0)
		return -1;
	if (o->open)
		show(p);
	if (confine(o, err, err_size) != 0)
		return -1;
	return web_server_start(p->server, err, err_size);
}

static void
say_ready(struct program *p)
{
	const struct web_options *o = &p->options;

	if (!o->open) {
		if (geteuid() == 0)
			log_warn("runs as root, and needs no privileges: a "
			    "user that the collector's socket lets in is "
			    "enough");
		log_info("serves %s for the collector at %s",
		    web_server_url(p->server), o->collector.text);
	}
	(void)sd_notify_send("READY=1");
	notify_fd_from_env("TRIBUTARY_WEB_NOTIFY_FD");
}

static int
serve(struct program *p)
{
	char err[WEB_ERROR_SIZE];
	int rc = COMMAND_FAILED;

	if (start(p, err, sizeof(err)) != 0) {
		log_error("%s", err);
		goto out;
	}
	say_ready(p);
	loop_run(p->loop);
	(void)sd_notify_send("STOPPING=1");
	rc = COMMAND_OK;
out:
	web_server_free(p->server);
	loop_timer_free(p->look);
	web_source_free(p->source);
	web_open_close(&p->options.file);
	if (p->loop != NULL)
		loop_free(p->loop);
	return rc;
}

int
main(int argc, char **argv)
{
	struct program *p = calloc(1, sizeof(*p));
	int rc;

	log_init("tributary-web", LOG_LEVEL_INFO);
	if (p == NULL) {
		log_error("no memory");
		return COMMAND_FAILED;
	}
	rc = web_options_parse(&p->options, argc, argv);
	if (rc < 0) {
		log_init("tributary-web", p->options.log_level);
		rc = serve(p);
	}
	free(p);
	return rc;
}
