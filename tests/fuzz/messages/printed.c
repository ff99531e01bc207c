/*
 * What a collector answers an operator, printed in every form: whatever it says,
 * a terminal is not steered by it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/show/machines_text.h"
#include "client/show/session_stats_text.h"
#include "client/show/sessions_text.h"
#include "client/show/sources_text.h"
#include "client/show/state_text.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"
#include "protos/service_state.pb-c.h"
#include "protos/unpack.h"
#include "tests/fuzz/messages/messages.h"

static void
check(FILE *out, char **text, size_t *len)
{
	size_t i;

	if (fclose(out) != 0)
		abort();
	for (i = 0; i < *len; i++)
		if (((unsigned char)(*text)[i] < ' ' && (*text)[i] != '\n') ||
		    (*text)[i] == 0x7f)
			abort();
	free(*text);
}

static FILE *
begin(char **text, size_t *len)
{
	FILE *out = open_memstream(text, len);

	if (out == NULL)
		abort();
	return out;
}

static void
print_machines(const Tributary__QueryMachinesReply *r)
{
	static const char *const names[] = { "c?r*", "host" };
	static const struct machines_words all = { NULL, 0 }, some = { names, 2 };
	const struct machines_list lists[] = { { "c1", r }, { "c2", r } };
	char *text = NULL;
	size_t len, form;
	FILE *out = begin(&text, &len);

	for (form = LIST_TABLE; form <= LIST_JSON; form++) {
		machines_print(out, lists, 1, &all, (enum list_form)form);
		machines_print(out, lists, 2, &some, (enum list_form)form);
	}
	check(out, &text, &len);
}

static void
print_sessions(const Tributary__QuerySessionsReply *r)
{
	const Tributary__SessionState **sessions =
	    (const Tributary__SessionState **)r->sessions;
	const struct control_sessions_list list = { .collector = "c1",
		.reply = r, .sessions = sessions, .n = r->n_sessions };
	char *text = NULL;
	size_t len, form, i;
	FILE *out = begin(&text, &len);

	for (form = LIST_TABLE; form <= LIST_JSON; form++)
		sessions_print(out, &list, 1, (enum list_form)form);
	for (i = 0; i < r->n_sessions; i++) {
		session_stats_print(out, sessions[i], r->now_ns);
		session_stats_json(&(struct json_out){ .out = out }, sessions[i],
		    r->now_ns);
	}
	check(out, &text, &len);
}

static void
print_state(const Perfetto__Protos__TracingServiceState *s)
{
	struct sources_filter all = { 0 };
	char *text = NULL;
	size_t len, form;
	FILE *out = begin(&text, &len);

	for (form = LIST_TABLE; form <= LIST_JSON; form++)
		sources_print(out, s, &all, (enum list_form)form);
	state_text_print(out, s, false);
	state_text_print(out, s, true);
	check(out, &text, &len);
}

void
fuzz_printed(const uint8_t *data, size_t size)
{
	ProtobufCMessage *m;

	m = unpack_checked(&tributary__query_machines_reply__descriptor, NULL,
	    size, data);
	if (m != NULL)
		print_machines((const Tributary__QueryMachinesReply *)m);
	protobuf_c_message_free_unpacked(m, NULL);
	m = unpack_checked(&tributary__query_sessions_reply__descriptor, NULL,
	    size, data);
	if (m != NULL)
		print_sessions((const Tributary__QuerySessionsReply *)m);
	protobuf_c_message_free_unpacked(m, NULL);
	m = unpack_checked(
	    &perfetto__protos__tracing_service_state__descriptor, NULL, size,
	    data);
	if (m != NULL)
		print_state((const Perfetto__Protos__TracingServiceState *)m);
	protobuf_c_message_free_unpacked(m, NULL);
}
