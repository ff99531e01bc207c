/*
 * Every text that the probes read, as any bytes: the parsers stay inside it,
 * and what they make of it is valid protobuf and valid UTF-8.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/probes/proc_text.h"
#include "client/probes/sys_keys.h"
#include "client/probes/sys_text.h"
#include "protos/fields.h"
#include "protos/sys_stats.pb-c.h"
#include "tests/fuzz/texts/texts.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static void
check_name(const char *name)
{
	char copy[PROC_NAME_MAX];
	size_t len = strnlen(name, PROC_NAME_MAX);

	if (len == PROC_NAME_MAX)
		abort();
	/* cleaning what is clean changes nothing */
	memcpy(copy, name, len);
	proc_text_clean(copy, len);
	if (memcmp(copy, name, len) != 0)
		abort();
}

static void
process_texts(const char *text, size_t len)
{
	struct proc_counters c;
	struct proc_status st;
	struct proc_times times;
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;
	char name[PROC_NAME_MAX], *copy;
	size_t n;

	if (proc_text_status(text, len, &st) == 0) {
		check_name(st.name);
		if (st.pid <= 0 || st.tgid <= 0 ||
		    st.n_nspid > PROC_NSPID_MAX)
			abort();
	}
	proc_text_memory(text, len, &c);
	proc_text_smaps(text, len, &c);
	if (proc_text_stat(text, len, &times) != 0)
		times.user = 0;
	proc_text_comm(text, len, name);
	check_name(name);

	if ((copy = malloc(len + (len == 0))) == NULL)
		abort();
	memcpy(copy, text, len);
	pb_writer_init(&w);
	n = proc_text_cmdline(copy, len, &w, 3);
	pb_init(&r, w.data, w.len);
	while (pb_next(&r, &f))
		n--;
	if (r.bad || n != 0)
		abort();
	pb_writer_done(&w);
	free(copy);
}

static void
system_texts(const char *text, size_t len)
{
	static struct sys_keys *meminfo, *vmstat;
	Perfetto__Protos__SysStats *stats;
	struct pb_writer w;
	uint64_t mhz;
	int64_t v;

	if (meminfo == NULL && ((meminfo = sys_keys_meminfo(NULL, 0)) == NULL ||
	    (vmstat = sys_keys_vmstat(NULL, 0)) == NULL))
		abort();
	pb_writer_init(&w);
	sys_text_counters(&w, SysStats_meminfo, meminfo, text, len);
	sys_text_counters(&w, SysStats_vmstat, vmstat, text, len);
	sys_text_stat(&w, ~0u, 10000000, text, len);
	sys_text_buddyinfo(&w, text, len);
	sys_text_diskstats(&w, text, len);
	sys_text_psi(&w, SYS_PSI_IO, text, len);
	sys_text_slabinfo(&w, text, len);
	if (sys_text_amd_clock(text, len, &mhz))
		pb_put_uint(&w, SysStats_gpufreq_mhz, mhz);
	if (sys_text_number(text, len, &v) && v >= 0)
		pb_put_uint(&w, SysStats_gpufreq_mhz, (uint64_t)v);
	if (w.failed)
		abort();
	stats = perfetto__protos__sys_stats__unpack(NULL, w.len, w.data);
	if (stats == NULL)
		abort();
	perfetto__protos__sys_stats__free_unpacked(stats, NULL);
	pb_writer_done(&w);
}

void
fuzz_probe_text(const uint8_t *data, size_t size)
{
	process_texts((const char *)data, size);
	system_texts((const char *)data, size);
}
