#include "service/session/session_vms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/config/config.h"
#include "service/ingest/buffer_vms.h"
#include "service/protovm/protovm.h"
#include "service/session/session.h"
#include "service/session/session_warnings.h"
#include "transport/base/log.h"

/* Warns that a producer's program is not run, and why. */
static void
refuse(struct session *s, const struct data_source *ds, const char *why)
{
	const struct producer *p = ds->producer;
	char source[64], name[64], text[512];

	snprintf(text, sizeof(text), "the ProtoVM program of data source "
	    "\"%s\" of producer %u (%s) is not run: %s",
	    log_escape(source, sizeof(source), ds->descriptor.name,
	    strlen(ds->descriptor.name)), p->id,
	    log_escape(name, sizeof(name), p->name, strlen(p->name)), why);
	session_warn(s, text);
}

static uint32_t
memory_kb(struct session *s, const struct config_data_source *want)
{
	char text[256], source[64];

	if (want->vm_memory_kb == 0)
		return SESSION_VM_KB_DEFAULT;
	if (want->vm_memory_kb <= SESSION_VM_KB_MAX)
		return want->vm_memory_kb;
	snprintf(text, sizeof(text), "protovm_config.memory_limit_kb of data "
	    "source \"%s\" is %u and counts as %u, the most there is",
	    log_escape(source, sizeof(source), want->name, strlen(want->name)),
	    want->vm_memory_kb, SESSION_VM_KB_MAX);
	session_warn(s, text);
	return SESSION_VM_KB_MAX;
}

/* A machine for the program; NULL with a reason in err. */
static struct protovm *
make_machine(struct session *s, const struct buffer_vm_offer *o, uint32_t kb,
    char *err, size_t err_size)
{
	struct protovm_program *program;
	struct protovm *vm;

	if ((program = protovm_program_new(o->program, o->len, err,
	    err_size)) == NULL || session_check_memory(s->service, &s->owner,
	    (uint64_t)kb * 1024, err, err_size) != 0) {
		protovm_program_unref(program);
		return NULL;
	}
	vm = protovm_new(program, (size_t)kb * 1024);
	protovm_program_unref(program);
	if (vm == NULL)
		snprintf(err, err_size, "the collector is out of memory");
	return vm;
}

/* The instance for a program that is offered the first time; NULL: none. */
static struct buffer_vm *
make_instance(struct session *s, const struct config_data_source *want,
    const struct data_source *ds, const struct buffer_vm_offer *o)
{
	struct session_buffer *b = &s->buffers[want->buffer];
	uint32_t kb = memory_kb(s, want);
	struct protovm *machine;
	struct buffer_vm *vm;
	char err[320] = "";

	if ((machine = make_machine(s, o, kb, err, sizeof(err))) == NULL)
		refuse(s, ds, err);
	if ((vm = buffer_vms_add(b->vms, o, machine)) == NULL) {
		protovm_free(machine);
		if (machine != NULL)
			refuse(s, ds, "the buffer has too many of them, or "
			    "the collector is out of memory");
		return NULL;
	}
	if (machine == NULL)
		return NULL;
	b->vm_bytes += (uint64_t)kb * 1024;
	s->service->total_buffer_bytes += (uint64_t)kb * 1024;
	return vm;
}

void
session_vms_add(struct session *s, const struct config_data_source *want,
    const struct data_source *ds)
{
	struct session_buffer *b = &s->buffers[want->buffer];
	struct buffer_vm_offer o = {
		.producer = ds->producer,
		.source = want->name,
		.program = ds->descriptor.program,
		.len = ds->descriptor.program_len,
	};
	struct buffer_vm *vm;

	if (!want->wants_vm || o.program == NULL)
		return;
	if (b->vms == NULL && (b->vms = buffer_vms_new(b->tb)) == NULL) {
		refuse(s, ds, "the collector is out of memory");
		return;
	}
	if ((vm = buffer_vms_find(b->vms, &o)) == NULL &&
	    (vm = make_instance(s, want, ds, &o)) == NULL)
		return;
	if (buffer_vms_join(b->vms, vm, ds->producer) != 0)
		refuse(s, ds, "this producer, or the buffer, has too many of "
		    "them, or the collector is out of memory");
}

static void
say_cb(void *arg, const char *sentence)
{
	session_warn(arg, sentence);
}

static void
warn_of_none(struct session *s, const struct config_data_source *want)
{
	const struct buffer_vms *vms = s->buffers[want->buffer].vms;
	char source[64], text[256];

	if (vms != NULL && buffer_vms_has_source(vms, want->name))
		return;
	snprintf(text, sizeof(text), "protovm_config of data source \"%s\" "
	    "had no effect: no producer of it offered a program",
	    log_escape(source, sizeof(source), want->name,
	    strlen(want->name)));
	session_warn(s, text);
}

void
session_vms_warn(struct session *s)
{
	size_t i;

	for (i = 0; i < s->config->n_data_sources; i++)
		if (s->config->data_sources[i].wants_vm &&
		    s->config->data_sources[i].buffer < s->n_buffers)
			warn_of_none(s, &s->config->data_sources[i]);
	for (i = 0; i < s->n_buffers; i++)
		if (s->buffers[i].vms != NULL)
			buffer_vms_complain(s->buffers[i].vms, say_cb, s);
}
