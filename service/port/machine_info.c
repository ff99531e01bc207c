#include "service/port/machine_info.h"

#include "protos/system_info.pb-c.h"
#include "service/session/machine.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"

/* SystemInfo (reference wire-format.md). */
enum { INFO_MACHINE_NAME = 17 };

/* Where its name is not the peer's to choose: all of it but the name. */
static int
keep_renamed(struct machine *m, const uint8_t *data, size_t len)
{
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;
	int rc = -1;

	pb_writer_init(&w);
	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		if (f.number != INFO_MACHINE_NAME)
			pb_put_raw(&w, f.start, (size_t)(r.p - f.start));
	pb_put_string(&w, INFO_MACHINE_NAME, m->name);
	if (!w.failed)
		rc = machine_set_system_info(m, w.data, w.len);
	pb_writer_done(&w);
	return rc;
}

static int
keep_as_it_is(struct machine *m, const uint8_t *data, size_t len,
    const char *name)
{
	if (name != NULL && *name != '\0' && machine_rename(m, name) != 0)
		return -1;
	return machine_set_system_info(m, data, len);
}

enum machine_info_verdict
machine_info_take(struct machine *m, const uint8_t *data, size_t len,
    bool may_name, bool named, const char **why)
{
	Perfetto__Protos__SystemInfo *info;
	int rc;

	*why = "its SystemInfo is too long";
	if (len > MACHINE_INFO_MAX)
		return MACHINE_INFO_REFUSED;
	info = perfetto__protos__system_info__unpack(NULL, len, data);
	if (info == NULL)
		return MACHINE_INFO_BAD;
	if (may_name)
		rc = keep_as_it_is(m, data, len,
		    named ? NULL : info->machine_name);
	else
		rc = keep_renamed(m, data, len);
	perfetto__protos__system_info__free_unpacked(info, NULL);
	*why = "no memory, or its SystemInfo is too long";
	return rc == 0 ? MACHINE_INFO_TAKEN : MACHINE_INFO_REFUSED;
}
