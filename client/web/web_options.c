#include "client/web/web_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/failure.h"

static const char help[] =
    "Usage: tributary-web [--connect ADDR] [--listen HOST:PORT] [FLAG...]\n"
    "\n"
    "Serves a page about a collector: healthy or not and why, recordings,\n"
    "sessions, machines, losses (/), its numbers for Prometheus (/metrics), those\n"
    "of one machine (/metrics?machine=NAME), and /healthz and /readyz for\n"
    "orchestrators. It is a consumer of the collector as tributary is, and sees\n"
    "what its user may see. Without --traced it changes nothing.\n"
    "\n"
    "      --listen HOST:PORT  default: " WEB_LISTEN "\n"
    "      --https-cert FILE, --https-key FILE\n"
    "                    serve https: certificate (with its chain) and key, PEM\n"
    "      --client-ca FILE  let in only clients with a certificate of this CA\n"
    "      --client-crl FILE  but none that this list of the CA revokes\n"
    "      --token-file FILE  let in only who sends this token: \"Authorization:\n"
    "                    Bearer TOKEN\", or as the password that a browser asks for\n"
    "      --name NAME[:PORT]  a name of this host, as browsers have it in the\n"
    "                    address line, where the port is not that of --listen with\n"
    "                    it; may be given several times. Requests for any other\n"
    "                    host are refused\n"
    "      --archive DIR show an archive at /archive: what is there, search, and\n"
    "                    traces for Perfetto's UI\n"
    "      --catalog postgresql://USER@HOST/DATABASE\n"
    "                    instead of a folder, the catalogue of what several\n"
    "                    collectors have in one store\n"
    "      --traced      let Perfetto's UI record (\"Record new trace\", target\n"
    "                    WebSocket): /traced carries the consumer protocol, so who\n"
    "                    reaches it may do what the user of tributary-web may\n"
    "      --origin ORIGIN  let pages of it record, beside those of\n"
    "                    https://ui.perfetto.dev; may be given several times\n"
    "      --ui ORIGIN   the copy of Perfetto's UI that gets traces; default:\n"
    "                    " WEB_UI "\n"
    "      --no-seccomp  do not confine its system calls\n"
    "      --log-level LEVEL  error, warn, info or debug\n"
    "      --version\n"
    COMMAND_CONSUMER_HELP
    "\n"
    "  tributary-web --open FILE [--ui ORIGIN] [--no-browser]\n"
    "                    without a collector: shows a trace in the UI, as\n"
    "                    `tributary open FILE` does, and ends\n"
    "\n"
    "Where other machines can reach it, it wants --https-cert and --https-key, and\n"
    "--client-ca or --token-file.\n"
    "\n"
    "Exit status: 0 after SIGTERM or SIGINT, or when the file was fetched; 1 when it\n"
    "cannot serve.\n";

#define AT(member) .at = offsetof(struct web_options, member)

static int
take_name(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	struct web_options *o = options;
	const char *port = strchr(value, ':');
	uint16_t number;

	/* Each counts twice; three names of loopback and addresses do, too. */
	if (o->n_names == WEB_HOSTS_MAX / 2 - 3 - WEB_ADDRESSES_MAX)
		return FAILURE(err, err_size, "--name: no more than %zu names",
		    o->n_names);
	if (value[0] == '\0' || value[0] == ':' || strchr(value, '/') != NULL ||
	    (port != NULL && addr_port(port + 1, &number) != 0))
		return FAILURE(err, err_size, "--name takes a name without a "
		    "scheme, and a port if browsers need another than that of "
		    "--listen: collector.example.net:8443");
	o->names[o->n_names++] = value;
	return 0;
}

static int
check_origin(const char *flag, const char *value, char *err, size_t err_size)
{
	const char *host = strstr(value, "://");

	if (host != NULL && host[3] != '\0' && strchr(host + 3, '/') == NULL)
		return 0;
	return FAILURE(err, err_size, "--%s takes scheme, host and port of a "
	    "page's address: https://ui.example.net", flag);
}

static int
take_origin(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct web_options *o = options;

	if (o->n_origins == WEB_ORIGINS_MAX)
		return FAILURE(err, err_size, "--origin: no more than %u",
		    WEB_ORIGINS_MAX);
	if (check_origin(flag->name, value, err, err_size) != 0)
		return -1;
	o->origins[o->n_origins++] = value;
	return 0;
}

static int
take_ui(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	struct web_options *o = options;

	if (check_origin(flag->name, value, err, err_size) != 0)
		return -1;
	/* Traces go there, and the address becomes a part of a page. */
	if ((strncmp(value, "https://", 8) != 0 &&
	    strncmp(value, "http://", 7) != 0) ||
	    strspn(strstr(value, "://") + 3, "abcdefghijklmnopqrstuvwxyz"
	    "0123456789.:[]-") != strlen(strstr(value, "://") + 3))
		return FAILURE(err, err_size, "--ui takes the origin of a page, "
		    "as browsers write it: https://ui.example.net");
	o->ui = value;
	return 0;
}

static int
take_level(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	struct web_options *o = options;

	if (log_level_parse(value, &o->log_level) == 0)
		return 0;
	return FAILURE(err, err_size, "--log-level takes error, warn, info or "
	    "debug");
}

static const struct flag table[] = {
	COMMAND_FLAGS(offsetof(struct web_options, line)),
	{ "archive", FLAG_TEXT, AT(archive) },
	{ "catalog", FLAG_TEXT, AT(catalog) },
	{ "client-ca", FLAG_TEXT, AT(client_ca) },
	{ "client-crl", FLAG_TEXT, AT(client_crl) },
	{ "https-cert", FLAG_TEXT, AT(https_cert) },
	{ "https-key", FLAG_TEXT, AT(https_key) },
	{ "listen", FLAG_TEXT, AT(listen) },
	{ "log-level", FLAG_VALUE, .take = take_level },
	{ "name", FLAG_VALUE, .take = take_name },
	{ "no-browser", FLAG_BOOL, AT(no_browser) },
	{ "no-seccomp", FLAG_BOOL, AT(no_seccomp) },
	{ "open", FLAG_BOOL, AT(open) },
	{ "origin", FLAG_VALUE, .take = take_origin },
	{ "token-file", FLAG_TEXT, AT(token_file) },
	{ "traced", FLAG_BOOL, AT(traced) },
	{ "ui", FLAG_VALUE, .take = take_ui },
	{ .name = "version", .kind = FLAG_VERSION },
	{ .name = NULL },
};

const struct flags web_options_flags = {
	.table = table,
	.speaker = "tributary-web",
	.help_is_at = "see tributary-web --help",
	.help = help,
	.version = "tributary-web " TRIBUTARY_VERSION,
	.bad_status = COMMAND_FAILED,
};

int
web_options_parse(struct web_options *o, int argc, char **argv)
{
	int status;

	*o = (struct web_options){ .line.how.service = "consumer",
		.ui = WEB_UI, .file.fd = -1, .log_level = LOG_LEVEL_INFO };
	status = command_line_parse(&o->line, &web_options_flags, o, argc,
	    argv);
	if (status >= 0)
		return status;
	if (o->open && o->line.n_words != 1)
		return flags_refuse(&web_options_flags, "--open takes one file");
	if (!o->open && o->line.n_words > 0)
		return flags_refuse(&web_options_flags, "takes no words, only "
		    "flags; see tributary-web --help");
	if (o->line.connect == NULL)
		o->line.connect = addr_default_consumer();
	return -1;
}

bool
web_options_lets_record(const struct web_options *o, const char *origin)
{
	static const char *const perfetto[] = { "https://ui.perfetto.dev",
		"http://localhost:10000", "http://127.0.0.1:10000" };
	size_t i;

	if (origin == NULL)
		return false;
	for (i = 0; i < sizeof(perfetto) / sizeof(perfetto[0]); i++)
		if (strcasecmp(origin, perfetto[i]) == 0)
			return true;
	for (i = 0; i < o->n_origins; i++)
		if (strcasecmp(origin, o->origins[i]) == 0)
			return true;
	return false;
}

/* ---- the token ---- */

static int
read_all(int fd, const char *path, char *out, size_t size, char *err,
    size_t err_size)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return FAILURE(err, err_size, "--token-file: %s is no regular "
		    "file", path);
	if ((st.st_mode & (S_IWGRP | S_IROTH | S_IWOTH)) != 0)
		return FAILURE(err, err_size, "--token-file: others can read "
		    "or change %s: chmod 600 %s", path, path);
	if ((n = read(fd, out, size)) < 0)
		return FAILURE(err, err_size, "--token-file: %s: %s", path,
		    strerror(errno));
	if ((size_t)n == size)
		return FAILURE(err, err_size, "--token-file: %s has more than "
		    "%zu bytes", path, size - 1);
	out[n] = '\0';
	return 0;
}

int
web_options_read_token(const char *path, char out[WEB_TOKEN_MAX], char *err,
    size_t err_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	const char *c;

	if (fd < 0)
		return FAILURE(err, err_size, "--token-file: %s: %s", path,
		    strerror(errno));
	rc = read_all(fd, path, out, WEB_TOKEN_MAX, err, err_size);
	close(fd);
	if (rc != 0)
		return -1;
	out[strcspn(out, "\r\n")] = '\0';
	if (strlen(out) < 16)
		return FAILURE(err, err_size, "--token-file: the first line of "
		    "%s has to have 16 characters at least: openssl rand -hex "
		    "32 > %s", path, path);
	for (c = out; *c != '\0'; c++)
		if (*c <= ' ' || *c > '~')
			return FAILURE(err, err_size, "--token-file: the token "
			    "in %s may have letters, digits and signs of ASCII "
			    "alone, and no blanks", path);
	return 0;
}

/* ---- where it listens ---- */

static int
resolve(struct web_options *o, char *err, size_t err_size)
{
	socklen_t lengths[WEB_ADDRESSES_MAX];
	size_t i;
	int n;

	if (addr_parse(&o->address, o->listen, err, err_size) != 0)
		return -1;
	if (o->address.kind != ADDR_TCP)
		return FAILURE(err, err_size, "--listen takes HOST:PORT, as "
		    WEB_LISTEN);
	n = addr_resolve(&o->address, o->resolved, lengths, WEB_ADDRESSES_MAX,
	    err, err_size);
	if (n < 1)
		return -1;
	o->n_resolved = (size_t)n;
	o->local = true;
	for (i = 0; i < o->n_resolved; i++)
		o->local = o->local && addr_is_local(&o->resolved[i]);
	return 0;
}

/* A file for one page of this machine, and nothing else. */
static int
check_open(struct web_options *o, char *err, size_t err_size)
{
	if (o->traced || o->archive != NULL || o->catalog != NULL ||
	    o->https_cert != NULL ||
	    o->https_key != NULL || o->token_file != NULL ||
	    o->client_ca != NULL || o->n_names > 0)
		return FAILURE(err, err_size, "--open shows one file and ends: "
		    "it goes with --ui, --no-browser and --listen alone");
	if (o->listen == NULL)
		o->listen = WEB_OPEN_LISTEN;
	if (resolve(o, err, err_size) != 0)
		return -1;
	if (!o->local)
		return FAILURE(err, err_size, "--open is for browsers of this "
		    "machine; for another one, let ssh carry the port: ssh -L "
		    "9001:127.0.0.1:9001");
	return web_open_file(&o->file, o->line.words[0], err, err_size);
}

int
web_options_check(struct web_options *o, char *err, size_t err_size)
{
	if (o->open)
		return check_open(o, err, err_size);
	if (o->no_browser)
		return FAILURE(err, err_size, "--no-browser is for --open");
	if (o->archive != NULL && o->catalog != NULL)
		return FAILURE(err, err_size, "--archive, or --catalog: not "
		    "both");
	if (o->listen == NULL)
		o->listen = WEB_LISTEN;
	if (command_line_consumer(&o->line, &o->collector, err, err_size) != 0 ||
	    resolve(o, err, err_size) != 0)
		return -1;
	if ((o->https_cert == NULL) != (o->https_key == NULL))
		return FAILURE(err, err_size, "https takes both --https-cert "
		    "and --https-key");
	if (o->client_ca != NULL && o->https_cert == NULL)
		return FAILURE(err, err_size, "--client-ca asks for clients' "
		    "certificates, which takes --https-cert and --https-key");
	if (o->client_crl != NULL && o->client_ca == NULL)
		return FAILURE(err, err_size, "--client-crl names certificates "
		    "of clients that are revoked, which takes --client-ca");
	if (o->n_origins > 0 && !o->traced)
		return FAILURE(err, err_size, "--origin says whose pages may "
		    "record, which takes --traced");
	if (!o->local && o->https_cert == NULL)
		return FAILURE(err, err_size, "other machines can reach %s: "
		    "give --https-cert and --https-key, or listen at "
		    WEB_LISTEN, o->listen);
	if (!o->local && o->client_ca == NULL && o->token_file == NULL)
		return FAILURE(err, err_size, "other machines can reach %s: "
		    "say who may, by --client-ca or --token-file", o->listen);
	return 0;
}
