#include "client/cert/revoke.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/cert/store.h"

static void
mark(struct cert_entry *e, enum cert_reason reason, time_t now,
    struct cert_revoked *done)
{
	if (e->state != CERT_REVOKED) {
		e->state = CERT_REVOKED;
		e->revoked = now;
		e->reason = reason;
		done->n++;
	}
	done->entry = *e;
}

/* All of a name; whether there was any. */
static bool
revoke_name(struct cert_index *x, const char *name, bool collector,
    enum cert_reason reason, time_t now, struct cert_revoked *done)
{
	struct cert_entry *e;
	bool any = false;
	size_t i;

	for (i = 0; i < x->n; i++) {
		e = &x->entries[i];
		if ((e->role == 0) != collector || strcmp(e->name, name) != 0)
			continue;
		any = true;
		/* An expired certificate is refused without a list. */
		if (e->until > now)
			mark(e, reason, now, done);
		else if (done->entry.serial[0] == '\0')
			done->entry = *e;
	}
	return any;
}

int
cert_revoke(const char *dir, const struct cert_revocation *order,
    struct cert_revoked *done, char *err, size_t err_size)
{
	const char *what = order->what;
	enum cert_reason reason = order->reason;
	time_t now = order->now;
	struct cert_store *s;
	struct cert_index *x;
	struct cert_entry *e;
	int r = -1;

	*done = (struct cert_revoked){ 0 };
	if ((s = cert_store_open(dir, err, err_size)) == NULL)
		return -1;
	x = cert_store_index(s);
	/* A device may have the collector's name: devices come first. */
	if (!revoke_name(x, what, false, reason, now, done) &&
	    !revoke_name(x, what, true, reason, now, done)) {
		if ((e = cert_index_by_serial(x, what)) == NULL) {
			snprintf(err, err_size, "\"%.80s\" is neither a name "
			    "nor a serial number of this CA: see tributary "
			    "cert show %s", what, dir);
			goto out;
		}
		mark(e, reason, now, done);
	}
	/*
	 * The index first: the CRL is made from it.  After a crash between the
	 * two renames the command, run again, writes the CRL.
	 */
	if (cert_store_stage_index(s, err, err_size) < 0 ||
	    cert_store_stage_crl(s, now, err, err_size) < 0 ||
	    cert_store_commit(s, err, err_size) < 0)
		goto out;
	r = 0;
out:
	cert_store_free(s);
	return r;
}
