#include "transport/connect/dial_flags.h"

#include <stdio.h>

#include "transport/connect/dial.h"
#include "transport/connect/dial_name.h"
#include "transport/socket/addr.h"

int
dial_flags_check(const struct dial_options *how, const struct addr *a,
    char *err, size_t err_size)
{
	const char *tls = how->tls_dir != NULL ? "--tls-dir"
	    : how->tls_name != NULL	       ? "--tls-name"
	    : how->sni_machine		       ? "--sni-machine"
	    : how->allow_tls12		       ? "--allow-tls-1.2"
					       : NULL;
	char name[DIAL_NAME_MAX];

	if (how->tls_dir != NULL && how->tls_dir[0] == '\0') {
		snprintf(err, err_size, "the folder that --tls-dir names is "
		    "empty text");
		return -1;
	}
	if (tls != NULL && a->kind != ADDR_TLS) {
		snprintf(err, err_size, "%s is for tls:// addresses, and %s is "
		    "none%s%s", tls, a->text,
		    a->kind == ADDR_TCP ? ": say tls://" : "",
		    a->kind == ADDR_TCP ? a->text : "");
		return -1;
	}
	if (a->kind == ADDR_TLS &&
	    dial_server_name(how, a, name, err, err_size) != 0)
		return -1;
	if (how->ssh_command == NULL)
		return 0;
	if (a->kind != ADDR_SSH) {
		snprintf(err, err_size, "--ssh-command is for ssh:// addresses, "
		    "and %s is none", a->text);
		return -1;
	}
	if (a->path[0] != '\0') {
		snprintf(err, err_size, "--ssh-command is the command on the "
		    "far side, but %s leads to %s there: leave one of them "
		    "out", a->text, a->path);
		return -1;
	}
	return 0;
}
