/*
 * sensors: files below /sys that hold one number each, searched for once and
 * kept open.
 *
 * The search is repeated after a number of readings in which some file could
 * not be read (a processor or device went away).
 */
#ifndef CLIENT_PROBES_SENSORS_H
#define CLIENT_PROBES_SENSORS_H

#include "client/probes/probe.h"
#include "transport/base/compiler.h"

struct pb_writer;
struct sensors;
struct text;

enum sensors_kind {
	SENSORS_CPUFREQ,
	SENSORS_CPUIDLE,
	SENSORS_DEVFREQ,
	SENSORS_GPUFREQ,
	SENSORS_THERMAL,
};

/* Most of one kind; more are not read. */
#define SENSORS_MAX 8192u

/* env is borrowed.  Looks for nothing yet.  NULL: no memory. */
struct sensors *sensors_new(struct probe_env *env, enum sensors_kind kind)
    MUST_CHECK;
void sensors_free(struct sensors *s);

/* Appends the fields of SysStats that the files give; text is scratch. */
void sensors_read(struct sensors *s, struct text *text, struct pb_writer *w);

#endif /* CLIENT_PROBES_SENSORS_H */
