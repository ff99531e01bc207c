/* The program's data sources, as the service hears of them. */
#include "client/tracing/port/port_internal.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

static void
put_source(struct pb_writer *w, const struct tributary_source *s)
{
	size_t mark;

	mark = pb_nest_begin(w,
	    RegisterDataSourceRequest_data_source_descriptor);
	pb_put_string(w, DataSourceDescriptor_name, s->name);
	pb_put_uint(w, DataSourceDescriptor_id, s->index + 1);
	pb_put_uint(w, DataSourceDescriptor_will_notify_on_stop, 1);
	pb_put_uint(w, DataSourceDescriptor_will_notify_on_start, 1);
	pb_put_uint(w, DataSourceDescriptor_handles_incremental_state_clear,
	    1);
	if (s->no_flush)
		pb_put_uint(w, DataSourceDescriptor_no_flush, 1);
	pb_put_raw(w, s->descriptor, s->descriptor_len);
	pb_nest_end(w, mark);
}

static void
register_source(struct port *p, struct pb_writer *w)
{
	if (w->failed)
		p->wire.out.failed = true; /* ends the connection */
	else if (port_wire_call(&p->wire, PORT_REGISTER_SOURCE, w->data,
	    w->len, true) != 0)
		p->registering++;
	pb_writer_reset(w);
}

void
port_sources_changed(struct port *p)
{
	struct tributary_source *s;
	struct pb_writer w;
	unsigned i;

	if (p->state != PORT_READY)
		return;
	pb_writer_init(&w);
	registry_lock();
	for (i = 0; (s = registry_source(i)) != NULL; i++) {
		put_source(&w, s);
		if (i < p->n_registered)
			port_call(p, PORT_UPDATE_SOURCE, &w);
		else
			register_source(p, &w);
	}
	p->n_registered = i;
	registry_unlock();
	pb_writer_done(&w);
}

void
port_source_registered(struct port *p, const struct port_event *e)
{
	struct pb_reader r;
	struct pb_field f;

	if (p->registering > 0)
		p->registering--;
	if (!e->ok) {
		/* The service has no memory, or the connection is ending. */
		port_disconnect(p, "the service refused a data source");
		return;
	}
	pb_init(&r, e->data, e->len);
	while (pb_next(&r, &f))
		if (f.number == RegisterDataSourceResponse_error &&
		    f.wire == PB_BYTES && f.len > 0)
			port_log(p, TRIBUTARY_LOG_WARNING, "The service refused "
			    "a data source: %.*s.", (int)f.len,
			    (const char *)f.data);
	port_settle(p);
}
