#include "service/process/sandbox_apply.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/process/sandbox.h"
#include "transport/tls/tls.h"

static bool
has_certificates(const struct tls_setting *t)
{
	return t->dir != NULL || t->ca != NULL || t->certificate != NULL ||
	    t->key != NULL || t->crl != NULL;
}

struct tls_file {
	const char *what;
	const char *path; /* of the settings, or NULL */
	const char *name; /* in the directory of the settings, otherwise */
	bool may_miss;
};

static int
check_tls_file(const char *dir, const struct tls_file *f, char *err,
    size_t err_size)
{
	char path[PATH_MAX];

	if (f->path != NULL)
		return sandbox_check_file(f->what, f->path, err, err_size);
	if (dir == NULL)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", dir, f->name);
	if (f->may_miss && access(path, F_OK) != 0)
		return 0;
	return sandbox_check_file(f->what, path, err, err_size);
}

static int
check_tls_files(const struct tls_setting *t, char *err, size_t err_size)
{
	const struct tls_file files[] = {
		{ "the TLS key", t->key, TLS_KEY_FILE, false },
		{ "the TLS certificate", t->certificate, TLS_CERT_FILE, false },
		{ "the CA's certificate", t->ca, TLS_CA_FILE, false },
		{ "the list of revoked certificates", t->crl, TLS_CRL_FILE,
		    true },
	};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (check_tls_file(t->dir, &files[i], err, err_size) != 0)
			return -1;
	return 0;
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
	if (s->archive_dir != NULL && sandbox_check_directory("archive_dir",
		s->archive_dir, err, err_size) != 0)
		return -1;
	return check_tls_files(&s->tls, err, err_size);
}

static int
refuse_system_calls(char *err, size_t err_size)
{
	bool filtered;

	if (sandbox_system_calls(SANDBOX_NOTHING_ELSE, &filtered, err,
		err_size) != 0)
		return -1;
	if (filtered)
		log_info("system calls are confined");
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
