/*
 * What the settings say about confinement, done in order.
 */
#include "service/process/sandbox.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/tls/tls.h"

static bool
has_certificates(const struct tls_setting *t)
{
	return t->dir != NULL || t->ca != NULL || t->certificate != NULL ||
	    t->key != NULL || t->crl != NULL;
}

/* named, or name in the directory; the file need not be there where may_miss */
static int
check_tls_file(const struct tls_setting *t, const char *what,
    const char *named, const char *name, bool may_miss, char *err,
    size_t err_size)
{
	char path[PATH_MAX];

	if (named != NULL)
		return sandbox_check_file(what, named, err, err_size);
	if (t->dir == NULL)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	if (may_miss && access(path, F_OK) != 0)
		return 0;
	return sandbox_check_file(what, path, err, err_size);
}

static int
check_tls_files(const struct tls_setting *t, char *err, size_t err_size)
{
	if (check_tls_file(t, "the TLS key", t->key, TLS_KEY_FILE, false, err,
		err_size) != 0 ||
	    check_tls_file(t, "the TLS certificate", t->certificate,
		TLS_CERT_FILE, false, err, err_size) != 0 ||
	    check_tls_file(t, "the CA's certificate", t->ca, TLS_CA_FILE,
		false, err, err_size) != 0)
		return -1;
	return check_tls_file(t, "the list of revoked certificates", t->crl,
	    TLS_CRL_FILE, true, err, err_size);
}

static int
become_user(const struct settings *s, char *err, size_t err_size)
{
	if (s->user == NULL)
		return 0;
	if (sandbox_become_user(s->user, err, err_size) != 0)
		return -1;
	log_info("running as uid %u", (unsigned)geteuid());
	if (s->trace_dir != NULL && sandbox_check_directory("trace_dir",
		s->trace_dir, err, err_size) != 0)
		return -1;
	return check_tls_files(&s->tls, err, err_size);
}

static int
refuse_system_calls(char *err, size_t err_size)
{
	bool filtered;

	if (sandbox_system_calls(&filtered, err, err_size) != 0)
		return -1;
	if (filtered)
		log_info("system calls are confined");
	else
		log_warn("this build has a sanitizer, which needs system calls "
		    "that seccomp would refuse: no filter");
	return 0;
}

int
sandbox_as_set(const struct settings *s, char *err, size_t err_size)
{
	if (become_user(s, err, err_size) != 0)
		return -1;
	if ((s->user != NULL || s->seccomp || has_certificates(&s->tls)) &&
	    sandbox_memory(err, err_size) != 0)
		return -1;
	return s->seccomp ? refuse_system_calls(err, err_size) : 0;
}
