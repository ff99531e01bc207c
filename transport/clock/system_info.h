/*
 * system_info: this machine, as a SystemInfo message describes it (reference
 * wire-format.md, "common/system_info.proto").
 *
 * system_info_collect() asks the operating system, once, at start-up; the
 * encoder is pure.
 */
#ifndef TRANSPORT_CLOCK_SYSTEM_INFO_H
#define TRANSPORT_CLOCK_SYSTEM_INFO_H

#include <stdint.h>
#include <sys/utsname.h>

struct pb_writer;

/* The name and version of a service, for traces and consumers. */
#define SYSTEM_INFO_VERSION "Tributary v" TRIBUTARY_VERSION

struct system_info {
	struct utsname uts;
	uint32_t page_size;
	uint32_t num_cpus;      /* configured, online or not */
	int32_t timezone_off_mins; /* east of UTC */
	int64_t hz;             /* ticks per second in /proc */
	uint64_t system_ram_bytes;
	char machine_name[256]; /* empty: left out */
	char version[128];      /* tracing_service_version */
};

/*
 * machine_name: the name the operator gave (PERFETTO_MACHINE_NAME); NULL: none.
 * What cannot be found out is 0 or empty and left out of the message.
 */
void system_info_collect(struct system_info *s, const char *machine_name);

/* Appends the fields of a SystemInfo message (no tag, no length). */
void system_info_encode(struct pb_writer *w, const struct system_info *s);
/* Asks the operating system and appends the fields of an InitRelayRequest. */
void system_info_introduce(struct pb_writer *w, const char *machine_name);

#endif /* TRANSPORT_CLOCK_SYSTEM_INFO_H */
