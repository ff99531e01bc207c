/*
 * Writes the pages of a real kernel as a trace, for other people's eyes:
 *
 *	pages_to_trace FOLDER plain|compact|described FILE... >TRACE
 *
 * FOLDER is as real_kernel.h has it, and has kallsyms in it.  A page is a
 * bundle.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/kernel_symbols.h"
#include "client/tracing/packet/packet.h"
#include "protos/fields.h"
#include "tests/unit/client/ftrace/events/real_kernel.h"

#define SEQUENCE 7

static struct kernel_symbols *
read_symbols(const char *folder)
{
	struct kernel_symbols *k = kernel_symbols_new();
	char path[4096], part[1000];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/kallsyms", folder);
	if (k == NULL || (file = fopen(path, "r")) == NULL)
		err(1, "%s", path);
	while ((n = fread(part, 1, sizeof(part), file)) > 0)
		if (!kernel_symbols_feed(k, part, n))
			err(1, NULL);
	fclose(file);
	if (kernel_symbols_end(k) == 0)
		errx(1, "%s: no symbols", path);
	return k;
}

static void
write_packet(struct tributary_packet *p)
{
	uint8_t head[1 + 10], *at;

	packet_put_uint(p, TracePacket_trusted_packet_sequence_id, SEQUENCE);
	if (p->flags != 0)
		packet_put_uint(p, TracePacket_sequence_flags, p->flags);
	if (p->failed)
		errx(1, "the packet failed");
	at = packet_varint(packet_tag(head, 1, PB_BYTES), packet_len(p));
	fwrite(head, 1, (size_t)(at - head), stdout);
	fwrite(p->data, 1, packet_len(p), stdout);
	packet_done(p);
}

int
main(int argc, char **argv)
{
	struct ftrace_bundle_setup setup = { 0 };
	struct ftrace_bundle_head head = { 0 };
	struct tributary_packet packet;
	static struct ftrace_bundle bundle;
	struct kernel_symbols *symbols;
	struct real_kernel *k;
	uint8_t *pages;
	size_t len, at;
	int i;

	if (argc < 4)
		errx(1, "usage: pages_to_trace FOLDER FORM FILE...");
	k = real_kernel_new(argv[1], strcmp(argv[2], "described") == 0 ?
	    EVENT_PLAN_DESCRIBED : EVENT_PLAN_GENERIC);
	symbols = read_symbols(argv[1]);
	setup.env = real_env(k);
	setup.symbols = symbols;
	setup.compact = strcmp(argv[2], "compact") == 0;
	ftrace_bundle_init(&bundle, &setup);
	for (i = 3; i < argc; i++) {
		pages = real_pages(argv[1], argv[i], &len);
		for (at = 0; at < len; at += REAL_PAGE) {
			packet_init(&packet);
			ftrace_bundle_begin(&bundle, &packet, &head);
			real_page_add(k, &bundle, pages + at);
			ftrace_bundle_end(&bundle);
			head.previous_end = bundle.end;
			write_packet(&packet);
		}
		free(pages);
	}
	ftrace_bundle_done(&bundle);
	kernel_symbols_free(symbols);
	real_kernel_free(k);
	return fflush(stdout) != 0;
}
