#include "transport/connect/dial_tls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/tls/tls.h"

struct shared_context {
	LIST_ENTRY(shared_context) link;
	struct loop *loop; /* owns the context; only compared */
	struct loop_call at_free;
	bool allow_tls12;
	struct tls_context *tls;
	char dir[]; /* as it was named */
};

/* Shared by all loops: the list is locked, an entry is its loop's alone. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, shared_context) contexts = LIST_HEAD_INITIALIZER(contexts);
static size_t n_contexts;

/* Called by loop_free() of the context's loop. */
static void
context_free(void *arg)
{
	struct shared_context *c = arg;

	pthread_mutex_lock(&lock);
	LIST_REMOVE(c, link);
	n_contexts--;
	pthread_mutex_unlock(&lock);
	tls_context_free(c->tls);
	free(c);
}

static struct shared_context *
context_find(const struct loop *l, const char *dir, bool allow_tls12)
{
	struct shared_context *c;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(c, &contexts, link)
		if (c->loop == l && c->allow_tls12 == allow_tls12 &&
		    strcmp(c->dir, dir) == 0)
			break;
	pthread_mutex_unlock(&lock);
	return c;
}

static bool
context_add(struct shared_context *c)
{
	bool room;

	pthread_mutex_lock(&lock);
	room = n_contexts < DIAL_TLS_CONTEXTS_MAX;
	if (room) {
		LIST_INSERT_HEAD(&contexts, c, link);
		n_contexts++;
	}
	pthread_mutex_unlock(&lock);
	return room;
}

static struct shared_context *
context_new(struct loop *l, const char *dir, bool allow_tls12, char *err,
    size_t err_size)
{
	struct tls_options o = {
		.side = TLS_CLIENT,
		.dir = dir,
		.allow_tls12 = allow_tls12,
	};
	size_t len = strlen(dir) + 1;
	struct shared_context *c;

	if ((c = calloc(1, sizeof(*c) + len)) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->loop = l;
	c->allow_tls12 = allow_tls12;
	memcpy(c->dir, dir, len);
	if ((c->tls = tls_context_new(&o, err, err_size)) == NULL)
		goto fail;
	if (!context_add(c)) {
		snprintf(err, err_size, "%s: certificates of more than %d "
		    "directories are in use at once", dir,
		    DIAL_TLS_CONTEXTS_MAX);
		goto fail;
	}
	loop_at_free(l, &c->at_free, context_free, c);
	return c;

fail:
	tls_context_free(c->tls);
	free(c);
	return NULL;
}

struct tls_context *
dial_tls_context(struct loop *l, const char *dir, bool allow_tls12, char *err,
    size_t err_size)
{
	struct shared_context *c = context_find(l, dir, allow_tls12);
	char why[TLS_ERROR_SIZE];

	if (c == NULL) {
		c = context_new(l, dir, allow_tls12, err, err_size);
		return c != NULL ? c->tls : NULL;
	}
	if (tls_context_is_stale(c->tls) &&
	    tls_context_reload(c->tls, why, sizeof(why)) != 0)
		log_warn("%s; the files read before stay in use", why);
	return c->tls;
}

/* ---- the directory of the files ---- */

/* The user's own; "" where the environment does not say. */
static void
user_dir(char *out, size_t out_size)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	if (config != NULL && *config != '\0')
		snprintf(out, out_size, "%s/tributary/tls", config);
	else if (home != NULL && *home != '\0')
		snprintf(out, out_size, "%s/.config/tributary/tls", home);
	else
		out[0] = '\0';
}

int
dial_tls_dir(char *out, size_t out_size, char *err, size_t err_size)
{
	static const char system_dir[] = "/etc/tributary/tls";
	const char *named = getenv("TRIBUTARY_TLS_DIR");
	char users[512];

	user_dir(users, sizeof(users));
	if (named == NULL || *named == '\0')
		named = users[0] != '\0' && access(users, F_OK) == 0 ? users :
		    access(system_dir, F_OK) == 0 ? system_dir : NULL;
	if (named != NULL && strlen(named) < out_size) {
		snprintf(out, out_size, "%s", named);
		return 0;
	}
	snprintf(err, err_size, "TLS needs a certificate of ours, and no "
	    "directory %s%s%s is there: have one made (`tributary cert issue` where the "
	    "CA is) and put its directory there, or name it (--tls-dir, or "
	    "$TRIBUTARY_TLS_DIR)", users, users[0] != '\0' ? " or " : "",
	    system_dir);
	return -1;
}
