#include "client/cert/name.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "protos/utf8.h"
#include "transport/base/failure.h"
#include "transport/socket/roles.h"

int
cert_name_check_text(const char *what, const char *text, char *err,
    size_t err_size)
{
	size_t len = strlen(text), at, n;

	if (len == 0 || len > CERT_NAME_MAX)
		return FAILURE(err, err_size, "%s has to have 1 to %d bytes, "
		    "this one has %zu", what, CERT_NAME_MAX, len);
	for (at = 0; at < len; at += n) {
		if ((n = utf8_printable(text + at, len - at)) != 0)
			continue;
		return FAILURE(err, err_size, "%s has a byte at %zu that is "
		    "not printable text", what, at + 1);
	}
	return 0;
}

int
cert_name_check(const char *name, char *err, size_t err_size)
{
	const char *wrong = NULL;

	if (cert_name_check_text("the name", name, err, err_size) < 0)
		return -1;
	if (name[0] == '.' || name[0] == '-')
		wrong = "begins with a dot or a dash";
	else if (strchr(name, '/') != NULL)
		wrong = "has a slash in it";
	else if (name[0] == ' ' || name[strlen(name) - 1] == ' ')
		wrong = "has a space at its end";
	if (wrong == NULL)
		return 0;
	return FAILURE(err, err_size, "the name \"%s\" %s; it becomes the name "
	    "of a folder: choose another", name, wrong);
}

static bool
is_host_name(const char *s)
{
	size_t label = 0;

	if (s[0] == '*' && s[1] == '.')
		s += 2;
	if (*s == '\0')
		return false;
	for (; *s != '\0'; s++) {
		if (*s == '.') {
			if (label == 0 || s[-1] == '-')
				return false;
			label = 0;
			continue;
		}
		if (!isalnum((unsigned char)*s) && *s != '_' &&
		    (*s != '-' || label == 0))
			return false;
		if (++label > 63)
			return false;
	}
	return label > 0 && s[-1] != '-';
}

/* 7-bit text without spaces: the characters of URIs and mail addresses. */
static bool
is_graphic(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s <= ' ' || *s >= 0x7f)
			return false;
	return true;
}

/* "scheme:rest" */
static bool
is_uri(const char *s)
{
	const char *p = s;

	if (!isalpha((unsigned char)*p))
		return false;
	while (isalnum((unsigned char)*p) || *p == '+' || *p == '-' ||
	    *p == '.')
		p++;
	return *p == ':' && p[1] != '\0' && is_graphic(s);
}

enum cert_name_kind
cert_name_kind(const char *text)
{
	unsigned char addr[16];
	const char *at = strchr(text, '@');
	size_t len = strlen(text);

	if (len == 0 || len > CERT_ALTERNATIVE_MAX)
		return CERT_NAME_NONE;
	if (inet_pton(AF_INET, text, addr) == 1 ||
	    inet_pton(AF_INET6, text, addr) == 1)
		return CERT_NAME_IP;
	/* "1.2.3": a mistyped address, no host's name */
	if (strspn(text, "0123456789.") == len)
		return CERT_NAME_NONE;
	if (is_host_name(text))
		return CERT_NAME_DNS;
	if (is_uri(text))
		return CERT_NAME_URI;
	if (at != NULL && at != text && strchr(at + 1, '@') == NULL &&
	    is_graphic(text) && is_host_name(at + 1) && at[1] != '*')
		return CERT_NAME_EMAIL;
	return CERT_NAME_NONE;
}

int
cert_name_check_alternative(const char *text, char *err, size_t err_size)
{
	if (role_from_uri(text, strlen(text)) != 0)
		return FAILURE(err, err_size, "%.80s is kept for roles: say "
		    "--role %.40s instead", text, strrchr(text, ':') + 1);
	if (cert_name_kind(text) != CERT_NAME_NONE)
		return 0;
	return FAILURE(err, err_size, "\"%.80s\" is no host name, IP address, "
	    "URI or mail address", text);
}
