#include "transport/producer_port/source_descriptor.h"

#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

int
source_descriptor_read(struct source_descriptor *d, const uint8_t *encoded,
    size_t len)
{
	struct source_descriptor now = { .len = len };
	const char *name = "";
	const uint8_t *program = NULL, *losses = NULL;
	size_t name_len = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, encoded, len) {
		switch (f.number) {
		case DataSourceDescriptor_name:
			if (f.wire != PB_BYTES)
				return -1;
			name = (const char *)f.data;
			name_len = f.len;
			break;
		case DataSourceDescriptor_will_notify_on_stop:
			now.will_notify_on_stop = f.value != 0;
			break;
		case DataSourceDescriptor_will_notify_on_start:
			now.will_notify_on_start = f.value != 0;
			break;
		case DataSourceDescriptor_handles_incremental_state_clear:
			now.handles_incremental_state_clear = f.value != 0;
			break;
		case DataSourceDescriptor_no_flush:
			now.no_flush = f.value != 0;
			break;
		case DataSourceDescriptor_protovm_program:
			if (f.wire != PB_BYTES)
				return -1;
			program = f.data;
			now.program_len = f.len;
			break;
		case DataSourceDescriptor_tributary_kernel_losses:
			if (f.wire != PB_BYTES)
				return -1;
			losses = f.data;
			now.kernel_losses_len = f.len;
			break;
		default:
			break;
		}
	}
	if (r.bad)
		return -1;
	now.name = strndup(name, name_len);
	now.encoded = malloc(len + 1);
	if (now.name == NULL || now.encoded == NULL) {
		source_descriptor_done(&now);
		return -1;
	}
	if (len > 0)
		memcpy(now.encoded, encoded, len);
	if (program != NULL)
		now.program = now.encoded + (program - encoded);
	if (losses != NULL)
		now.kernel_losses = now.encoded + (losses - encoded);
	source_descriptor_done(d);
	*d = now;
	return 0;
}

const char *
source_descriptor_name(const uint8_t *encoded, size_t len, size_t *name_len)
{
	const char *name = NULL;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, encoded, len)
		if (f.number == DataSourceDescriptor_name &&
		    f.wire == PB_BYTES) {
			name = (const char *)f.data;
			*name_len = f.len;
		}
	return r.bad ? NULL : name;
}

bool
source_descriptor_is_named(const struct source_descriptor *d, const char *name,
    size_t len)
{
	return strlen(d->name) == len && memcmp(d->name, name, len) == 0;
}

void
source_descriptor_done(struct source_descriptor *d)
{
	free(d->name);
	free(d->encoded);
}
