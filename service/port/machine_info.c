#include "service/port/machine_info.h"

#include "protos/fields.h"
#include "protos/system_info.pb-c.h"
#include "service/machine/machine.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static int
keep_all_but_the_name(struct machine *m, const uint8_t *data, size_t len)
{
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;
	int rc = -1;

	pb_writer_init(&w);
	PB_FOREACH(&f, &r, data, len)
		if (f.number != SystemInfo_machine_name)
			pb_put_raw(&w, f.start, (size_t)(r.p - f.start));
	if (!w.failed)
		rc = machine_set_system_info(m, w.data, w.len);
	pb_writer_done(&w);
	return rc;
}

enum machine_info_verdict
machine_info_take(struct machine *m, const uint8_t *data, size_t len,
    bool may_name, bool named, const char **why)
{
	Perfetto__Protos__SystemInfo *info;
	const char *name;
	int rc = 0;

	*why = "its SystemInfo is too long";
	if (len > MACHINE_INFO_MAX)
		return MACHINE_INFO_REFUSED;
	info = perfetto__protos__system_info__unpack(NULL, len, data);
	if (info == NULL)
		return MACHINE_INFO_BAD;
	name = info->machine_name;
	if (may_name && !named && name != NULL && *name != '\0')
		rc = machine_rename(m, name);
	if (rc == 0)
		rc = keep_all_but_the_name(m, data, len);
	perfetto__protos__system_info__free_unpacked(info, NULL);
	*why = "no memory, or its SystemInfo is too long";
	return rc == 0 ? MACHINE_INFO_TAKEN : MACHINE_INFO_REFUSED;
}
