#include "service/process/front_report.h"

#include "protos/fields.h"
#include "service/collector/service.h"
#include "service/front/certificates.h"
#include "service/front/gate.h"
#include "service/limits/disk_free.h"
#include "service/limits/metric_count.h"
#include "service/recordings/recordings.h"
#include "transport/wire/pb_writer.h"

static void
put_folder(struct pb_writer *w, const char *name, struct front_folder *f,
    int fd)
{
	uint64_t bytes;

	if (f->fd != fd) {
		f->fd = fd;
		f->local = disk_is_local(fd);
	}
	if (f->local && disk_free_bytes(fd, &bytes))
		metric_count_put(w, QueryMetricsReply_disk_free_bytes, name,
		    bytes);
}

static void
report_cb(void *arg, struct pb_writer *w)
{
	struct front_report *r = arg;
	const struct recordings *all = r->service->recordings;

	gate_report(r->gate, w);
	if (r->certificates != NULL)
		pb_put_uint(w, QueryMetricsReply_certificate_expiry_s,
		    (uint64_t)certificates_not_after(r->certificates));
	put_folder(w, "trace_dir", &r->trace_dir, r->service->trace_dirfd);
	put_folder(w, "archive_dir", &r->archive_dir, all != NULL ?
	    recordings_folder(all) : -1);
}

void
front_report_init(struct front_report *r, struct service *s,
    const struct gate *g, const struct certificates *c)
{
	*r = (struct front_report){ .service = s, .gate = g,
		.certificates = c, .trace_dir.fd = -1, .archive_dir.fd = -1 };
	s->report_front = report_cb;
	s->report_front_arg = r;
}
