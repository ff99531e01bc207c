#include "transport/clock/system_info.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

/* sysconf(), with -1 ("no such thing") as 0. */
static long
sysconf_or_zero(int name)
{
	long v = sysconf(name);

	return v < 0 ? 0 : v;
}

static int32_t
timezone_off_mins(void)
{
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm) == NULL)
		return 0;
	return (int32_t)(tm.tm_gmtoff / 60);
}

void
system_info_collect(struct system_info *s, const char *machine_name)
{
	struct sysinfo si;

	memset(s, 0, sizeof(*s));
	if (uname(&s->uts) != 0)
		memset(&s->uts, 0, sizeof(s->uts));
	s->page_size = (uint32_t)sysconf_or_zero(_SC_PAGESIZE);
	s->num_cpus = (uint32_t)sysconf_or_zero(_SC_NPROCESSORS_CONF);
	s->hz = sysconf_or_zero(_SC_CLK_TCK);
	s->timezone_off_mins = timezone_off_mins();
	if (sysinfo(&si) == 0)
		s->system_ram_bytes = (uint64_t)si.totalram * si.mem_unit;
	if (machine_name != NULL)
		snprintf(s->machine_name, sizeof(s->machine_name), "%s",
		    machine_name);
	snprintf(s->version, sizeof(s->version), "%s", SYSTEM_INFO_VERSION);
}

static void
put_text(struct pb_writer *w, uint32_t field, const char *s)
{
	if (s[0] != '\0')
		pb_put_string(w, field, s);
}

static void
put_number(struct pb_writer *w, uint32_t field, uint64_t v)
{
	if (v != 0)
		pb_put_uint(w, field, v);
}

void
system_info_encode(struct pb_writer *w, const struct system_info *s)
{
	size_t mark;

	put_text(w, SystemInfo_tracing_service_version, s->version);
	/* 0 is an answer here: UTC */
	pb_put_int(w, SystemInfo_timezone_off_mins, s->timezone_off_mins);
	mark = pb_nest_begin(w, SystemInfo_utsname);
	put_text(w, Utsname_sysname, s->uts.sysname);
	put_text(w, Utsname_version, s->uts.version);
	put_text(w, Utsname_machine, s->uts.machine);
	put_text(w, Utsname_release, s->uts.release);
	pb_nest_end(w, mark);
	put_number(w, SystemInfo_page_size, s->page_size);
	put_number(w, SystemInfo_system_ram_bytes, s->system_ram_bytes);
	put_number(w, SystemInfo_num_cpus, s->num_cpus);
	put_number(w, SystemInfo_hz, (uint64_t)s->hz);
	put_text(w, SystemInfo_machine_name, s->machine_name);
}

void
system_info_introduce(struct pb_writer *w, const char *machine_name)
{
	struct system_info info;
	size_t mark;

	system_info_collect(&info, machine_name);
	mark = pb_nest_begin(w, InitRelayRequest_system_info);
	system_info_encode(w, &info);
	pb_nest_end(w, mark);
}
