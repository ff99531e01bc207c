#include "client/archive/postgres_url.h"

#include <ctype.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/failure.h"

bool
postgres_url_is(const char *text)
{
	return strncmp(text, "postgresql://", 13) == 0 ||
	    strncmp(text, "postgres://", 11) == 0;
}

static const char *
value_of(const PQconninfoOption *all, const char *keyword)
{
	for (; all->keyword != NULL; all++)
		if (strcmp(all->keyword, keyword) == 0 && all->val != NULL)
			return all->val;
	return "";
}

static void
put_encoded(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (isalnum((unsigned char)*text) ||
		    strchr("-._~/,", *text) != NULL)
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

static void
put_part(FILE *out, const char *before, const char *text, const char *behind)
{
	if (text[0] == '\0')
		return;
	fputs(before, out);
	put_encoded(out, text);
	fputs(behind, out);
}

/* Parts that say where; a host that is a folder cannot stand in its place. */
static void
put_name(FILE *out, const PQconninfoOption *all)
{
	const char *host = value_of(all, "host");
	const char *service = value_of(all, "service");
	const char *port = value_of(all, "port");
	bool folder = host[0] == '/' || strchr(host, ',') != NULL;

	/* Several hosts have as many ports, or a "," for each that has none. */
	port += strspn(port, ",") == strlen(port) ? strlen(port) : 0;

	fputs("postgresql://", out);
	put_part(out, "", value_of(all, "user"), "@");
	put_part(out, "", folder ? "" : host, "");
	put_part(out, ":", folder ? "" : port, "");
	put_part(out, "/", value_of(all, "dbname"), "");
	put_part(out, "?host=", folder ? host : "", "");
	put_part(out, "&port=", folder ? port : "", "");
	put_part(out, folder ? "&service=" : "?service=", service, "");
}

/* libpq quotes what it does not understand, which may be a password. */
static int
refuse(const char *why, char *err, size_t err_size)
{
	int n = why == NULL ? 0 : (int)strcspn(why, "\"\n");

	while (n > 0 && (why[n - 1] == ' ' || why[n - 1] == ':'))
		n--;
	return FAILURE(err, err_size, "this is no address of a catalogue in "
	    "PostgreSQL, postgresql://USER@HOST/DATABASE: %.*s", n,
	    why == NULL ? "" : why);
}

int
postgres_url_name(const char *url, char out[POSTGRES_NAME_MAX], char *err,
    size_t err_size)
{
	PQconninfoOption *all = NULL;
	char *why = NULL;
	FILE *to;
	int rc = -1;

	if (!postgres_url_is(url))
		return refuse("it begins otherwise", err, err_size);
	if ((all = PQconninfoParse(url, &why)) == NULL) {
		(void)refuse(why, err, err_size);
	} else if (strchr(value_of(all, "host"), '@') != NULL ||
	    strchr(value_of(all, "dbname"), '@') != NULL) {
		/* libpq takes the end of a password for these. */
		(void)FAILURE(err, err_size, "the address of a catalogue in "
		    "PostgreSQL has an \"@\" too many: in a password it is "
		    "written %%40, and \"/\" is %%2F");
	} else if ((to = fmemopen(out, POSTGRES_NAME_MAX, "w")) == NULL) {
		snprintf(err, err_size, "no memory");
	} else {
		put_name(to, all);
		fclose(to);
		out[POSTGRES_NAME_MAX - 1] = '\0';
		rc = 0;
	}
	PQconninfoFree(all);
	PQfreemem(why);
	return rc;
}

char *
postgres_url_host(const char *url)
{
	PQconninfoOption *all = PQconninfoParse(url, NULL);
	const char *host;
	char *copy;

	if (all == NULL)
		return NULL;
	host = value_of(all, "host");
	copy = host[0] == '/' ? strdup("") :
	    strndup(host, strcspn(host, ","));
	PQconninfoFree(all);
	return copy;
}
