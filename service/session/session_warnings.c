#include "service/session/session_warnings.h"

#include <stdlib.h>
#include <string.h>

#include "protos/config_support.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "transport/base/log.h"

_Static_assert(SESSION_WARNINGS_MAX > CONFIG_SUPPORT_MAX,
    "the config's leave room for others");

void
session_warn(struct session *s, const char *sentence)
{
	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "session %llu: %s", (unsigned long long)s->id, sentence);
	if (s->n_warnings == SESSION_WARNINGS_MAX)
		return;
	if (s->warnings == NULL && (s->warnings = calloc(SESSION_WARNINGS_MAX,
	    sizeof(*s->warnings))) == NULL)
		return;
	s->warnings[s->n_warnings] = strdup(sentence);
	s->n_warnings += s->warnings[s->n_warnings] != NULL;
}

static void
warn_cb(void *arg, const char *path, const char *text)
{
	(void)path; /* the text names it */
	session_warn(arg, text);
}

void
session_warn_of_config(struct session *s)
{
	config_support_check(s->config->bytes, s->config->len, warn_cb, s);
}

void
session_warnings_free(struct session *s)
{
	while (s->n_warnings > 0)
		free(s->warnings[--s->n_warnings]);
	free(s->warnings);
	s->warnings = NULL;
}
