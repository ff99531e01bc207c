#include "service/process/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/front/handover.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"

struct upgrade {
	struct child *child;
	int fd; /* its standard output */
	char *path;
	struct upgrade_answer answer;
};

/* Variables of sd_notify and others are not meant for a trial. */
static const char *const not_for_trials[] = {
	"NOTIFY_SOCKET=", "WATCHDOG_", "TRACED_NOTIFY_FD=",
};

/* ---- who ---- */

/* The file of this program, as the kernel says. */
static char *
own_file(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return NULL;
	path[n] = '\0';
	return strdup(path);
}

void
successor_init(struct successor *s, int argc, char **argv)
{
	char folder[PATH_MAX];
	size_t size;

	memset(s, 0, sizeof(*s));
	s->argc = argc;
	s->argv = argv;
	if (argc == 0 || strchr(argv[0], '/') == NULL) {
		s->path = own_file();
	} else if (argv[0][0] == '/') {
		s->path = strdup(argv[0]);
	} else if (getcwd(folder, sizeof(folder)) != NULL) {
		size = strlen(folder) + strlen(argv[0]) + 2;
		if ((s->path = malloc(size)) != NULL)
			snprintf(s->path, size, "%s/%s", folder, argv[0]);
	}
}

void
successor_done(struct successor *s)
{
	free(s->path);
	s->path = NULL;
}

/* The arguments, and `last` unless NULL.  The strings are borrowed. */
static char **
arguments(const struct successor *s, const char *last)
{
	char **argv = calloc((size_t)s->argc + 3, sizeof(*argv));
	int i, n = 0;

	if (argv == NULL)
		return NULL;
	argv[n++] = s->path;
	for (i = 1; i < s->argc; i++)
		argv[n++] = s->argv[i];
	if (last != NULL)
		argv[n++] = (char *)last;
	return argv;
}

static bool
starts_with_any(const char *text, const char *const *words, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* Our environment and the text of h.  The strings are borrowed. */
static char **
surroundings(const struct handover *h, bool trial)
{
	size_t i, n = 0, most = 0;
	char **env;

	while (environ[most] != NULL)
		most++;
	if ((env = calloc(most + 2, sizeof(*env))) == NULL)
		return NULL;
	for (i = 0; i < most; i++)
		if (!trial || !starts_with_any(environ[i], not_for_trials,
			sizeof(not_for_trials) / sizeof(not_for_trials[0])))
			env[n++] = environ[i];
	env[n] = h->text;
	return env;
}

/* ---- the trial ---- */

/* A program that can take over prints so; older versions do not. */
static bool
it_takes_over(struct upgrade *u)
{
	char said[256];
	ssize_t n = read(u->fd, said, sizeof(said) - 1);

	if (n <= 0)
		return false;
	said[n] = '\0';
	return strstr(said, "takes over") != NULL;
}

/* Writes a sentence with the first line of the trial's standard error. */
static void
complaint(const struct upgrade *u, char *out, size_t out_size)
{
	const char *text = child_stderr(u->child);
	char line[512];

	log_escape(line, sizeof(line), text, strcspn(text, "\n"));
	snprintf(out, out_size, "%s does not accept the settings: %s", u->path,
	    *line != '\0' ? line : "it does not say why");
}

static void
ended_cb(void *arg)
{
	struct upgrade *u = arg;
	int status = child_status(u->child);
	char why[1024];

	if (status == 0 && it_takes_over(u)) {
		u->answer.told(u->answer.arg, NULL);
		return;
	}
	if (status == -1)
		snprintf(why, sizeof(why), "%s was not done with a look at the "
		    "settings after %u ms", u->path, UPGRADE_TRIAL_MS);
	else if (status == 0)
		snprintf(why, sizeof(why), "%s cannot take over sockets, it is "
		    "too old (or no tributaryd): restart the daemon instead",
		    u->path);
	else if (status > 128)
		snprintf(why, sizeof(why), "%s was ended by signal %d when it "
		    "looked at the settings", u->path, status - 128);
	else
		complaint(u, why, sizeof(why));
	u->answer.told(u->answer.arg, why);
}

struct upgrade *
upgrade_try(struct loop *l, const struct successor *s,
    const struct handover *h, const struct upgrade_answer *answer, char *err,
    size_t err_size)
{
	struct child_setup setup = { .fds = h->fds, .n_fds = h->n };
	char **argv = NULL, **env = NULL;
	struct upgrade *u;

	if (s->path == NULL) {
		snprintf(err, err_size, "it is not known which file this "
		    "program was started from");
		return NULL;
	}
	snprintf(err, err_size, "no memory");
	if ((u = calloc(1, sizeof(*u))) == NULL)
		return NULL;
	u->fd = -1;
	u->answer = *answer;
	if ((u->path = strdup(s->path)) == NULL ||
	    (argv = arguments(s, "--check-config")) == NULL ||
	    (env = surroundings(h, true)) == NULL)
		goto fail;
	setup.environment = env;
	u->child = child_new_with(l, argv, &setup, &u->fd, err, err_size);
	if (u->child == NULL)
		goto fail;
	child_when_ended(u->child, UPGRADE_TRIAL_MS, ended_cb, u);
	free(argv);
	free(env);
	return u;

fail:
	free(argv);
	free(env);
	upgrade_free(u);
	return NULL;
}

void
upgrade_free(struct upgrade *u)
{
	if (u == NULL)
		return;
	child_free(u->child);
	if (u->fd >= 0)
		close(u->fd);
	free(u->path);
	free(u);
}

/* ---- the step ---- */

static void
mask_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
	(void)sigprocmask(how, &set, NULL);
}

void
upgrade_hold_signals(void)
{
	mask_signals(SIG_BLOCK);
}

void
upgrade_let_signals_in(void)
{
	mask_signals(SIG_UNBLOCK);
}

void
upgrade_become(const struct successor *s, const struct handover *h, char *err,
    size_t err_size)
{
	char **argv = arguments(s, NULL), **env = surroundings(h, false);
	size_t i;

	snprintf(err, err_size, "no memory");
	if (argv == NULL || env == NULL)
		goto out;
	for (i = 0; i < h->n; i++)
		(void)fcntl(h->fds[i], F_SETFD, 0);
	execve(s->path, argv, env);
	snprintf(err, err_size, "cannot execute %s: %s", s->path,
	    strerror(errno));
	log_error("upgrade: %s; this version goes on", err);
	execve("/proc/self/exe", argv, env);
out:
	free(argv);
	free(env);
}
