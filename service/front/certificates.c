#include "service/front/certificates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/tls/tls.h"
#include "transport/tls/tls_reload.h"

#define LOOK_MS    2000u
#define DAY_S      (24 * 60 * 60)
#define WARN_DAYS  14
#define TIME_BYTES 40

struct certificates {
	struct tls_context *context;
	struct loop_timer *look;
	void (*renewed)(void *arg);
	void *arg;
	time_t warned; /* 0: not yet */
	/*
	 * Files change one after the other: broken ones are logged only when
	 * they are still broken at the next look.
	 */
	bool again;
};

static const char *
time_text(time_t t, char out[TIME_BYTES])
{
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(out, TIME_BYTES, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		snprintf(out, TIME_BYTES, "?");
	return out;
}

bool
certificates_ends_soon(const char *name, time_t not_after, time_t now,
    char *out, size_t out_size)
{
	long long days = (long long)(not_after - now) / DAY_S;
	char when[TIME_BYTES], escaped[160];

	if (not_after - now > WARN_DAYS * (time_t)DAY_S)
		return false;
	log_escape(escaped, sizeof(escaped), name, strlen(name));
	time_text(not_after, when);
	if (not_after < now)
		snprintf(out, out_size, "the certificate \"%s\" expired on %s: "
		    "no peer can connect with TLS until it is renewed", escaped,
		    when);
	else
		snprintf(out, out_size, "the certificate \"%s\" ends in %lld "
		    "day%s, on %s: renew it", escaped, days,
		    days == 1 ? "" : "s", when);
	return true;
}

static void
warn_once_a_day(struct certificates *c)
{
	time_t now = time(NULL);
	struct tls_own own;
	char text[320];

	if (c->warned != 0 && now - c->warned < DAY_S && now >= c->warned)
		return;
	tls_context_own(c->context, &own);
	if (!certificates_ends_soon(own.name, own.not_after, now, text,
		sizeof(text)))
		return;
	c->warned = now;
	log_warn("%s", text);
}

static void
renewed(struct certificates *c)
{
	char when[TIME_BYTES], name[160];
	struct tls_own own;

	c->again = false;
	c->warned = 0;
	tls_context_own(c->context, &own);
	log_escape(name, sizeof(name), own.name, strlen(own.name));
	log_info("certificates reloaded: %s, valid until %s", name,
	    time_text(own.not_after, when));
	warn_once_a_day(c);
	c->renewed(c->arg);
}

static void
tell_broken(struct certificates *c, const char *err)
{
	c->again = false;
	log_error("certificates not reloaded, kept the old ones: %s", err);
}

static void
look_cb(void *arg)
{
	struct certificates *c = arg;
	char err[TLS_ERROR_SIZE];

	warn_once_a_day(c);
	if (!c->again && !tls_context_is_stale(c->context))
		return;
	if (tls_context_reload(c->context, err, sizeof(err)) == 0)
		renewed(c);
	else if (c->again)
		tell_broken(c, err);
	else
		c->again = true;
}

void
certificates_reload(struct certificates *c)
{
	char err[TLS_ERROR_SIZE];

	if (tls_context_reload(c->context, err, sizeof(err)) == 0)
		renewed(c);
	else
		tell_broken(c, err);
}

struct tls_context *
certificates_context(const struct certificates *c)
{
	return c->context;
}

const char *
certificates_text(const struct certificates *c, char *out, size_t out_size)
{
	char when[TIME_BYTES], name[128];
	struct tls_own own;

	tls_context_own(c->context, &own);
	log_escape(name, sizeof(name), own.name, strlen(own.name));
	snprintf(out, out_size, "certificate %s until %s", name,
	    time_text(own.not_after, when));
	return out;
}

time_t
certificates_not_after(const struct certificates *c)
{
	struct tls_own own;

	tls_context_own(c->context, &own);
	return own.not_after;
}

struct certificates *
certificates_new(struct loop *l, const struct tls_setting *setting,
    void (*fn)(void *arg), void *arg, char *err, size_t err_size)
{
	struct tls_options options = {
		.side = TLS_SERVER,
		.dir = setting->dir,
		.ca = setting->ca,
		.cert = setting->certificate,
		.key = setting->key,
		.crl = setting->crl,
		.allow_tls12 = setting->allow_tls12,
	};
	struct certificates *c;

	snprintf(err, err_size, "no memory");
	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->renewed = fn;
	c->arg = arg;
	c->context = tls_context_new(&options, err, err_size);
	if (c->context == NULL)
		goto fail;
	if ((c->look = loop_timer_new(l, look_cb, c)) == NULL) {
		snprintf(err, err_size, "no memory");
		goto fail;
	}
	loop_timer_set(c->look, LOOK_MS, 1);
	warn_once_a_day(c);
	return c;

fail:
	certificates_free(c);
	return NULL;
}

void
certificates_free(struct certificates *c)
{
	if (c == NULL)
		return;
	loop_timer_free(c->look);
	tls_context_free(c->context);
	free(c);
}
