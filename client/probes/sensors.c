#include "client/probes/sensors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/probes/proc_text.h"
#include "client/probes/scan.h"
#include "client/probes/sys_text.h"
#include "client/probes/text_file.h"
#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

#define LABEL_MAX 64
#define PATH_MAX_BYTES 512

/*
 * Readings with a failure until the set is looked for again: a device may have
 * gone, but some sensors just have no value for hours.
 */
#define LOST_READINGS 32

/* Most graphics cards that are searched. */
#define CARDS 8

struct sensor {
	int fd;        /* -1: opened for each reading */
	uint32_t cpu;  /* CPUFREQ, CPUIDLE */
	bool amd;      /* GPUFREQ: a table of clocks */
	uint32_t scale; /* the number is divided by it */
	char label[LABEL_MAX]; /* name of the state, device or zone */
	char type[LABEL_MAX];  /* THERMAL */
	char path[PATH_MAX_BYTES];
};

struct sensors {
	struct probe_env *env; /* borrowed */
	enum sensors_kind kind;
	bool found; /* the search was made */
	unsigned lost; /* readings with a failure since the search */
	struct sensor *set; /* owned */
	size_t n;
	size_t room;
};

struct sensors *
sensors_new(struct probe_env *env, enum sensors_kind kind)
{
	struct sensors *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->env = env;
	s->kind = kind;
	return s;
}

static void
forget(struct sensors *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->set[i].fd < 0)
			continue;
		close(s->set[i].fd);
		s->env->fds_left++;
	}
	s->n = 0;
	s->lost = 0;
	s->found = false;
}

void
sensors_free(struct sensors *s)
{
	if (s == NULL)
		return;
	forget(s);
	free(s->set);
	free(s);
}

/* ---- finding ---- */

/* One line of a file as valid UTF-8, without its newline; "" if unreadable. */
static void
read_label(struct text *text, const char *path, char out[LABEL_MAX])
{
	size_t len = 0;

	if (text_read_at(text, AT_FDCWD, path) == 0) {
		len = text->len;
		if (len > 0 && text->data[len - 1] == '\n')
			len--;
		if (len > LABEL_MAX - 1)
			len = LABEL_MAX - 1;
		memcpy(out, text->data, len);
	}
	out[len] = '\0';
	proc_text_clean(out, len);
}

/* A sensor at path, if it can be opened; NULL otherwise. */
static struct sensor *
add(struct sensors *s, const char *path)
{
	struct sensor *grown, *x;
	size_t room;
	int fd;

	if (s->n == SENSORS_MAX || strlen(path) >= PATH_MAX_BYTES)
		return NULL;
	if (s->n == s->room) {
		room = s->room == 0 ? 16 : s->room * 2;
		grown = realloc(s->set, room * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		s->set = grown;
		s->room = room;
	}
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return NULL;
	x = &s->set[s->n++];
	memset(x, 0, sizeof(*x));
	memcpy(x->path, path, strlen(path) + 1);
	x->scale = 1;
	if (s->env->fds_left > 0) {
		x->fd = fd;
		s->env->fds_left--;
	} else {
		close(fd);
		x->fd = -1;
	}
	return x;
}

/*
 * Calls fn for the entries of a folder that begin with prefix, in the order of
 * their numbers, with what follows the prefix.
 */
static void
each_entry(struct sensors *s, struct text *text, const char *folder,
    const char *prefix, void (*fn)(struct sensors *s, struct text *text,
    const char *folder, const char *name))
{
	struct dirent **names;
	int i, n;

	if ((n = scandir(folder, &names, NULL, versionsort)) < 0)
		return;
	for (i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.' &&
		    strncmp(names[i]->d_name, prefix, strlen(prefix)) == 0)
			fn(s, text, folder, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* "cpu12": 12; false for "cpufreq" and the like. */
static bool
cpu_number(const char *name, uint32_t *out)
{
	struct scan d = scan_text(name + 3, strlen(name + 3));
	uint64_t v;

	if (!scan_u64(&d, &v) || d.p != d.end)
		return false;
	*out = (uint32_t)v;
	return true;
}

static void
find_cpufreq(struct sensors *s, struct text *text, const char *folder,
    const char *name)
{
	char path[PATH_MAX_BYTES];
	struct sensor *x;
	uint32_t cpu;

	if (!cpu_number(name, &cpu))
		return;
	snprintf(path, sizeof(path), "%s/%s/cpufreq/scaling_cur_freq", folder,
	    name);
	if ((x = add(s, path)) != NULL)
		x->cpu = cpu;
}

static void
find_idle_state(struct sensors *s, struct text *text, const char *folder,
    const char *name)
{
	char path[PATH_MAX_BYTES], label[LABEL_MAX];
	struct sensor *x;
	const char *cpu;

	snprintf(path, sizeof(path), "%s/%s/name", folder, name);
	read_label(text, path, label);
	snprintf(path, sizeof(path), "%s/%s/time", folder, name);
	if (label[0] == '\0' || (x = add(s, path)) == NULL)
		return;
	memcpy(x->label, label, sizeof(label));
	/* the folder is .../cpuN/cpuidle */
	cpu = strrchr(folder, '/') - 1;
	while (*cpu != '/')
		cpu--;
	x->cpu = (uint32_t)strtoul(cpu + strlen("/cpu"), NULL, 10);
}

static void
find_cpuidle(struct sensors *s, struct text *text, const char *folder,
    const char *name)
{
	char path[PATH_MAX_BYTES];
	uint32_t cpu;

	if (!cpu_number(name, &cpu))
		return;
	snprintf(path, sizeof(path), "%s/%s/cpuidle", folder, name);
	each_entry(s, text, path, "state", find_idle_state);
}

static void
find_devfreq(struct sensors *s, struct text *text, const char *folder,
    const char *name)
{
	char path[PATH_MAX_BYTES];
	struct sensor *x;

	snprintf(path, sizeof(path), "%s/%s/cur_freq", folder, name);
	if ((x = add(s, path)) == NULL)
		return;
	snprintf(x->label, sizeof(x->label), "%s", name);
	proc_text_clean(x->label, strlen(x->label));
}

static void
find_thermal(struct sensors *s, struct text *text, const char *folder,
    const char *name)
{
	char path[PATH_MAX_BYTES];
	struct sensor *x;

	snprintf(path, sizeof(path), "%s/%s/temp", folder, name);
	if ((x = add(s, path)) == NULL)
		return;
	x->scale = 1000;
	snprintf(x->label, sizeof(x->label), "%s", name);
	proc_text_clean(x->label, strlen(x->label));
	snprintf(path, sizeof(path), "%s/%s/type", folder, name);
	read_label(text, path, x->type);
}

/* Adreno has one file of its own; Intel and AMD one for each card. */
static void
find_gpufreq(struct sensors *s)
{
	char path[PATH_MAX_BYTES];
	struct sensor *x;
	int i;

	snprintf(path, sizeof(path), "%s/class/kgsl/kgsl-3d0/devfreq/cur_freq",
	    s->env->sys);
	if ((x = add(s, path)) != NULL) {
		x->scale = 1000000;
		return;
	}
	for (i = 0; i < CARDS; i++) {
		snprintf(path, sizeof(path),
		    "%s/class/drm/card%d/gt_act_freq_mhz", s->env->sys, i);
		if (add(s, path) != NULL)
			continue;
		snprintf(path, sizeof(path),
		    "%s/class/drm/card%d/device/pp_dpm_sclk", s->env->sys, i);
		if ((x = add(s, path)) != NULL)
			x->amd = true;
	}
}

static void
find(struct sensors *s, struct text *text)
{
	char folder[PATH_MAX_BYTES];
	const char *sys = s->env->sys;

	s->found = true;
	switch (s->kind) {
	case SENSORS_CPUFREQ:
		snprintf(folder, sizeof(folder), "%s/devices/system/cpu", sys);
		each_entry(s, text, folder, "cpu", find_cpufreq);
		break;
	case SENSORS_CPUIDLE:
		snprintf(folder, sizeof(folder), "%s/devices/system/cpu", sys);
		each_entry(s, text, folder, "cpu", find_cpuidle);
		break;
	case SENSORS_DEVFREQ:
		snprintf(folder, sizeof(folder), "%s/class/devfreq", sys);
		each_entry(s, text, folder, "", find_devfreq);
		break;
	case SENSORS_GPUFREQ:
		find_gpufreq(s);
		break;
	case SENSORS_THERMAL:
		snprintf(folder, sizeof(folder), "%s/class/thermal", sys);
		each_entry(s, text, folder, "thermal_zone", find_thermal);
		break;
	}
}

/* ---- reading ---- */

static bool
read_value(struct sensor *x, struct text *text, uint64_t *out)
{
	int64_t v;

	if ((x->fd >= 0 ? text_read_fd(text, x->fd) :
	    text_read_at(text, AT_FDCWD, x->path)) < 0)
		return false;
	if (x->amd)
		return sys_text_amd_clock(text->data, text->len, out);
	/* a temperature below zero cannot be written */
	if (!sys_text_number(text->data, text->len, &v) || v < 0)
		return false;
	*out = (uint64_t)v / x->scale;
	return true;
}

/* SysStats.cpufreq_khz has one entry per processor: 0 where it is unknown. */
static void
put_cpufreq(struct sensors *s, struct text *text, struct pb_writer *w,
    bool *lost)
{
	uint32_t cpu = 0, i, last;
	uint64_t v;

	if (s->n == 0)
		return;
	last = s->set[s->n - 1].cpu;
	for (i = 0; cpu <= last && cpu < SENSORS_MAX; cpu++) {
		v = 0;
		if (i < s->n && s->set[i].cpu == cpu &&
		    !read_value(&s->set[i++], text, &v))
			*lost = true;
		pb_put_uint(w, SysStats_cpufreq_khz, v);
	}
}

/* The states of one processor after the other: one message for each. */
static void
put_cpuidle(struct sensors *s, struct text *text, struct pb_writer *w,
    bool *lost)
{
	size_t i = 0, cpu_mark, mark;
	uint32_t cpu;
	uint64_t v;

	while (i < s->n) {
		cpu = s->set[i].cpu;
		cpu_mark = pb_nest_begin(w, SysStats_cpuidle_state);
		pb_put_uint(w, CpuIdleState_cpu_id, cpu);
		for (; i < s->n && s->set[i].cpu == cpu; i++) {
			if (!read_value(&s->set[i], text, &v)) {
				*lost = true;
				continue;
			}
			mark = pb_nest_begin(w,
			    CpuIdleState_cpuidle_state_entry);
			pb_put_string(w, CpuIdleStateEntry_state,
			    s->set[i].label);
			pb_put_uint(w, CpuIdleStateEntry_duration_us, v);
			pb_nest_end(w, mark);
		}
		pb_nest_end(w, cpu_mark);
	}
}

/* DevfreqValue, or ThermalZone, which has a type besides. */
static void
put_named(struct sensors *s, uint32_t field, struct text *text,
    struct pb_writer *w, bool *lost)
{
	size_t i, mark;
	uint64_t v;

	for (i = 0; i < s->n; i++) {
		if (!read_value(&s->set[i], text, &v)) {
			*lost = true;
			continue;
		}
		mark = pb_nest_begin(w, field);
		pb_put_string(w, ThermalZone_name, s->set[i].label);
		pb_put_uint(w, ThermalZone_temp, v);
		if (s->set[i].type[0] != '\0')
			pb_put_string(w, ThermalZone_type, s->set[i].type);
		pb_nest_end(w, mark);
	}
}

static void
put_gpufreq(struct sensors *s, struct text *text, struct pb_writer *w,
    bool *lost)
{
	size_t i;
	uint64_t v;

	for (i = 0; i < s->n; i++)
		if (read_value(&s->set[i], text, &v))
			pb_put_uint(w, SysStats_gpufreq_mhz, v);
		else
			*lost = true;
}

void
sensors_read(struct sensors *s, struct text *text, struct pb_writer *w)
{
	bool lost = false;

	if (!s->found)
		find(s, text);
	switch (s->kind) {
	case SENSORS_CPUFREQ:
		put_cpufreq(s, text, w, &lost);
		break;
	case SENSORS_CPUIDLE:
		put_cpuidle(s, text, w, &lost);
		break;
	case SENSORS_DEVFREQ:
		put_named(s, SysStats_devfreq, text, w, &lost);
		break;
	case SENSORS_GPUFREQ:
		put_gpufreq(s, text, w, &lost);
		break;
	case SENSORS_THERMAL:
		put_named(s, SysStats_thermal_zone, text, w, &lost);
		break;
	}
	if (lost && ++s->lost == LOST_READINGS)
		forget(s);
}
