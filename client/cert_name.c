#include "client/cert_name.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "transport/roles.h"

/*
 * One character of UTF-8 from p, which ends with a NUL; its length, or 0 when
 * it is none (too long a form and surrogates included).
 */
static size_t
utf8_one(const unsigned char *p, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len, i;

	if (p[0] < 0x80) {
		*c = p[0];
		return 1;
	}
	len = p[0] >= 0xf0 && p[0] < 0xf8 ? 4 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
	    : p[0] >= 0xc0 && p[0] < 0xe0 ? 2 : 0;
	if (len == 0)
		return 0;
	*c = p[0] & (0xffu >> (len + 1));
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	if (*c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000))
		return 0;
	return len;
}

/* Characters that are not seen, or that turn a line around. */
static bool
is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ||
	    (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

int
cert_name_check_text(const char *what, const char *text, char *err,
    size_t err_size)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = strlen(text), n;
	uint32_t c;

	if (len == 0 || len > CERT_NAME_MAX) {
		snprintf(err, err_size, "%s has to have 1 to %d bytes, this "
		    "one has %zu", what, CERT_NAME_MAX, len);
		return -1;
	}
	for (; *p != '\0'; p += n) {
		if ((n = utf8_one(p, &c)) != 0 && !is_hidden(c))
			continue;
		snprintf(err, err_size, "%s has a byte at %zu that is not "
		    "printable text", what,
		    (size_t)(p - (const unsigned char *)text) + 1);
		return -1;
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
	snprintf(err, err_size, "the name \"%s\" %s; it becomes the name of a "
	    "folder: choose another", name, wrong);
	return -1;
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
	if (role_from_uri(text, strlen(text)) != 0) {
		snprintf(err, err_size, "%.80s is kept for roles: say --role "
		    "%.40s instead", text, strrchr(text, ':') + 1);
		return -1;
	}
	if (cert_name_kind(text) != CERT_NAME_NONE)
		return 0;
	snprintf(err, err_size, "\"%.80s\" is no host name, IP address, URI or "
	    "mail address", text);
	return -1;
}

const char *
cert_name_shell(const char *text, char *out, size_t out_size)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
	size_t at = 0;

	if (*text != '\0' && strspn(text, safe) == strlen(text)) {
		snprintf(out, out_size, "%s", text);
		return out;
	}
	at += (size_t)snprintf(out, out_size, "'");
	for (; *text != '\0' && at + 6 < out_size; text++)
		at += (size_t)snprintf(out + at, out_size - at,
		    *text == '\'' ? "'\\''" : "%c", *text);
	snprintf(out + at, out_size - at, "'");
	return out;
}
