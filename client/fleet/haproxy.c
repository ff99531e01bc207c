#include "client/fleet/haproxy.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/socket/addr.h"

/* A collector is gone when so many checks in a row have failed. */
#define FALL 3u
/*
 * HAProxy places a server by its id times 4096, in 32 bits: ids that are equal
 * in these bits are in the same places.
 */
#define IDS ((1u << 20) - 1)

struct server {
	char name[ADDR_TEXT_MAX]; /* the address without brackets */
	struct addr addr;
	uint32_t id; /* 1 to IDS */
};

static bool
is_plain(const char *text, const char *also)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";
	const char *p;

	for (p = text; *p != '\0'; p++)
		if (strchr(letters, *p) == NULL && strchr(also, *p) == NULL)
			return false;
	return text[0] != '\0';
}

/*
 * Derived from the name alone (FNV-1a), not from its place in the list as
 * HAProxy's own ids are: else a collector that is added in front, or removed,
 * would move the machines of all behind it.
 */
static uint32_t
id_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return (h ^ h >> 20) % IDS + 1;
}

static int
parse(struct addr *a, const char *text, const char *also, char *err,
    size_t err_size)
{
	char shown[128], why[512];

	log_escape(shown, sizeof(shown), text, strlen(text));
	if (addr_parse(a, text, why, sizeof(why)) != 0)
		return FAILURE(err, err_size, "%s: %s", shown, why);
	if (a->kind != ADDR_TCP || !is_plain(a->host, also) ||
	    strtoul(a->port, NULL, 10) == 0)
		return FAILURE(err, err_size, "%s is no HOST:PORT: HAProxy "
		    "reaches collectors over TCP alone, and passes on the TLS "
		    "that devices speak (collector.example:7443)", shown);
	return 0;
}

static int
take_server(struct server *servers, size_t n, const char *text, char *err,
    size_t err_size)
{
	struct server *s = &servers[n];
	size_t i;

	if (parse(&s->addr, text, "", err, err_size) != 0)
		return -1;
	snprintf(s->name, sizeof(s->name), "%s:%s", s->addr.host,
	    s->addr.port);
	s->id = id_of(s->name);
	for (i = 0; i < n; i++) {
		if (strcmp(servers[i].name, s->name) == 0)
			return FAILURE(err, err_size, "%s is named twice: "
			    "leave one of them out", s->name);
		if (servers[i].id == s->id)
			return FAILURE(err, err_size, "%s and %s happen to get "
			    "the same id (%u), by which HAProxy places them: "
			    "give one of them another port, or reach it by "
			    "another name", servers[i].name, s->name, s->id);
	}
	return 0;
}

/* ---- the text ---- */

static void
print_head(FILE *out)
{
	fputs(
"# HAProxy in front of several collectors of Tributary: a device reaches the\n"
"# collector that the server name it asks for leads to.  TLS is between device\n"
"# and collector; nothing is decrypted here.\n"
"#\n"
"# Made by `tributary fleet haproxy`; docs/fleet.md explains it.  To add or remove\n"
"# a collector, make it anew and reload HAProxy: other collectors' devices stay.\n"
"\n"
"global\n"
"    log stderr format short daemon\n"
"\n"
"defaults\n"
"    mode tcp\n"
"    log global\n"
"    option tcplog\n"
"    option dontlognull\n"
"    timeout connect 5s\n"
"    # A link lives for weeks, and a producer may be silent for days: these end\n"
"    # only what nothing was heard of for longer.  A peer that is gone is noticed\n"
"    # by keepalive, after two minutes.\n"
"    timeout client 24d\n"
"    timeout server 24d\n"
"    option clitcpka\n"
"    clitcpka-idle 60s\n"
"    clitcpka-intvl 10s\n"
"    clitcpka-cnt 6\n"
"    option srvtcpka\n"
"    srvtcpka-idle 60s\n"
"    srvtcpka-intvl 10s\n"
"    srvtcpka-cnt 6\n", out);
}

/* As HAProxy reads it, without "tcp:". */
static void
print_address(FILE *out, const struct addr *a)
{
	fprintf(out, strchr(a->host, ':') != NULL ? "[%s]:%s" : "%s:%s",
	    a->host, a->port);
}

static void
print_frontend(FILE *out, const struct addr *listen)
{
	fputs("\nfrontend devices\n    bind ", out);
	print_address(out, listen);
	fputs(
"\n"
"    # The server name is in the first message of TLS.  Whoever asks for none is\n"
"    # refused: it would be led to another collector at every connection.\n"
"    tcp-request inspect-delay 5s\n"
"    tcp-request content set-var(sess.device) req.ssl_sni,lower if { req.ssl_hello_type 1 }\n"
"    tcp-request content accept if { req.ssl_hello_type 1 } { req.ssl_sni -m found }\n"
"    tcp-request content reject\n"
"    default_backend collectors\n", out);
}

static void
print_health(FILE *out, const struct haproxy_settings *s)
{
	fprintf(out, "    # tributary-web beside each collector says whether it "
	    "answers.  One that does\n    # not for %u checks is gone, and its "
	    "devices go to others when they connect\n    # again; they come "
	    "back when they connect after its return.\n"
	    "    option httpchk\n"
	    "    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host "
	    "localhost:%u", FALL, s->health_port);
	if (s->health_ca != NULL)
		fputs(" hdr Authorization \"Bearer ${TRIBUTARY_WEB_TOKEN}\"",
		    out);
	fprintf(out, "\n    http-check disable-on-404\n"
	    "    default-server weight 100 check port %u inter %llums fall %u "
	    "rise 2", s->health_port,
	    (unsigned long long)(s->grace_ms / FALL), FALL);
	if (s->health_ca != NULL)
		fprintf(out, " check-ssl verify required ca-file %s",
		    s->health_ca);
	fputc('\n', out);
}

static void
print_backend(FILE *out, const struct haproxy_settings *s,
    const struct server *servers)
{
	size_t i;

	fputs(
"\nbackend collectors\n"
"    # By way of the variable: with req.ssl_sni here HAProxy takes turns, without a\n"
"    # word.\n"
"    balance hash var(sess.device)\n"
"    hash-type consistent wt6 avalanche\n", out);
	print_health(out, s);
	fputs(
"    # The id is a function of the name: it must stay as it is, or devices move.\n",
	    out);
	for (i = 0; i < s->n; i++) {
		fprintf(out, "    server %s ", servers[i].name);
		print_address(out, &servers[i].addr);
		fprintf(out, " id %u", servers[i].id);
		if (s->health_ca != NULL && !addr_host_is_number(servers[i].addr.host))
			fprintf(out, " verifyhost %s", servers[i].addr.host);
		fputc('\n', out);
	}
}

static int
check(const struct haproxy_settings *s, char *err, size_t err_size)
{
	if (s->n == 0)
		return FAILURE(err, err_size, "which collectors?  Name each by "
		    "HOST:PORT, where it listens for producers over TLS");
	if (s->n > HAPROXY_COLLECTORS_MAX)
		return FAILURE(err, err_size, "%zu collectors are more than "
		    "the %u that there may be", s->n, HAPROXY_COLLECTORS_MAX);
	if (s->health_ca != NULL && !is_plain(s->health_ca, "/+=@,"))
		return FAILURE(err, err_size, "the name of the CA's file goes "
		    "into HAProxy's settings as it is: let it be of letters, "
		    "digits and ./-_+=@, alone");
	return 0;
}

int
haproxy_print(const struct haproxy_settings *s, FILE *out, char *err,
    size_t err_size)
{
	static struct server servers[HAPROXY_COLLECTORS_MAX];
	struct addr listen;
	size_t i;

	if (check(s, err, err_size) != 0 ||
	    parse(&listen, s->listen, "*", err, err_size) != 0)
		return -1;
	for (i = 0; i < s->n; i++)
		if (take_server(servers, i, s->collectors[i], err,
			err_size) != 0)
			return -1;
	print_head(out);
	print_frontend(out, &listen);
	print_backend(out, s, servers);
	return 0;
}
