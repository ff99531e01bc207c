#include "client/probes/proc_text.h"

#include <string.h>

#include "client/probes/scan.h"
#include "protos/utf8.h"
#include "transport/wire/pb_writer.h"

/* ---- names ---- */

void
proc_text_clean(char *text, size_t len)
{
	size_t i, n;

	for (i = 0; i < len; i += n) {
		n = utf8_char(text + i, len - i);
		if (n == 0) {
			text[i] = '?';
			n = 1;
		}
	}
}

void
proc_text_comm(const char *text, size_t len, char out[PROC_NAME_MAX])
{
	if (len > 0 && text[len - 1] == '\n')
		len--;
	if (len > PROC_NAME_MAX - 1)
		len = PROC_NAME_MAX - 1;
	memcpy(out, text, len);
	out[len] = '\0';
	proc_text_clean(out, len);
}

/* The status file shows a newline as \n and a backslash as two of them. */
static void
unescape_name(const struct scan *value, char out[PROC_NAME_MAX])
{
	const char *p = value->p;
	size_t n = 0;

	while (p < value->end && n < PROC_NAME_MAX - 1) {
		if (*p == '\\' && value->end - p >= 2 &&
		    (p[1] == 'n' || p[1] == '\\')) {
			out[n++] = p[1] == 'n' ? '\n' : '\\';
			p += 2;
		} else {
			out[n++] = *p++;
		}
	}
	out[n] = '\0';
	proc_text_clean(out, n);
}

size_t
proc_text_cmdline(char *text, size_t len, struct pb_writer *w, uint32_t field)
{
	char *p = text, *end = text + len, *nul;
	size_t n = 0;

	proc_text_clean(text, len);
	while (p < end) {
		nul = memchr(p, '\0', (size_t)(end - p));
		if (nul == NULL)
			nul = end;
		if (nul > p) {
			pb_put_bytes(w, field, p, (size_t)(nul - p));
			n++;
		}
		p = nul + 1;
	}
	return n;
}

/* ---- status ---- */

/* "NSpid: 5000 7 1": all but the first, which is the pid we know. */
static void
read_nspid(struct scan value, struct proc_status *out)
{
	int32_t v;

	if (!scan_i32(&value, &v))
		return;
	while (out->n_nspid < PROC_NSPID_MAX && scan_i32(&value, &v))
		out->nspid[out->n_nspid++] = v;
}

int
proc_text_status(const char *text, size_t len, struct proc_status *out)
{
	struct scan s = scan_text(text, len), line, key, value;
	struct proc_status st = { .kthread = -1 };
	uint64_t uid;
	int32_t v;

	while (scan_line(&s, &line)) {
		if (!scan_key(&line, &key, &value))
			continue;
		if (scan_is(&key, "Name"))
			unescape_name(&value, st.name);
		else if (scan_is(&key, "NSpid"))
			read_nspid(value, &st);
		else if (scan_is(&key, "Uid") && scan_u64(&value, &uid))
			st.uid = (int32_t)(uint32_t)uid; /* up to 2^32 - 2 */
		else if (!scan_i32(&value, &v))
			continue;
		else if (scan_is(&key, "Pid"))
			st.pid = v;
		else if (scan_is(&key, "Tgid"))
			st.tgid = v;
		else if (scan_is(&key, "PPid"))
			st.ppid = v;
		else if (scan_is(&key, "Kthread") && (v == 0 || v == 1))
			st.kthread = v;
	}
	if (st.pid <= 0 || st.tgid <= 0)
		return -1;
	*out = st;
	return 0;
}

struct counter_name {
	const char *key;
	enum proc_counter counter;
};

static const struct counter_name status_names[] = {
	{ "VmSize", PROC_VM_SIZE },
	{ "VmLck", PROC_VM_LOCKED },
	{ "VmHWM", PROC_VM_HWM },
	{ "VmRSS", PROC_VM_RSS },
	{ "RssAnon", PROC_RSS_ANON },
	{ "RssFile", PROC_RSS_FILE },
	{ "RssShmem", PROC_RSS_SHMEM },
	{ "VmSwap", PROC_VM_SWAP },
};

static const struct counter_name smaps_names[] = {
	{ "Rss", PROC_SMR_RSS },
	{ "Pss", PROC_SMR_PSS },
	{ "Pss_Anon", PROC_SMR_PSS_ANON },
	{ "Pss_File", PROC_SMR_PSS_FILE },
	{ "Pss_Shmem", PROC_SMR_PSS_SHMEM },
	{ "SwapPss", PROC_SMR_SWAP_PSS },
};

/*
 * The kernel's order is the tables': the search for a line's key begins
 * behind the last one found, so that a usual text costs one comparison a line.
 */
static void
read_counters(struct scan s, const struct counter_name *names, size_t n,
    struct proc_counters *out)
{
	struct scan line, key, value;
	size_t i, next = 0, found = 0;
	uint64_t kb;

	while (found < n && scan_line(&s, &line)) {
		if (line.p == line.end || !strchr("VRPS", *line.p) ||
		    !scan_key(&line, &key, &value))
			continue;
		for (i = 0; i < n; i++)
			if (scan_is(&key, names[(next + i) % n].key))
				break;
		if (i == n || !scan_u64(&value, &kb))
			continue;
		next = (next + i) % n;
		out->kb[names[next].counter] = kb;
		out->present |= 1u << names[next].counter;
		next++;
		found++;
	}
}

void
proc_text_memory(const char *text, size_t len, struct proc_counters *out)
{
	memset(out, 0, sizeof(*out));
	read_counters(scan_text(text, len), status_names,
	    sizeof(status_names) / sizeof(status_names[0]), out);
}

void
proc_text_smaps(const char *text, size_t len, struct proc_counters *out)
{
	read_counters(scan_text(text, len), smaps_names,
	    sizeof(smaps_names) / sizeof(smaps_names[0]), out);
}

/* ---- stat ---- */

/* Fields of /proc/PID/stat, counted from 1. */
#define STAT_UTIME     14
#define STAT_STIME     15
#define STAT_STARTTIME 22

int
proc_text_stat(const char *text, size_t len, struct proc_times *out)
{
	struct scan s = scan_text(text, len), word;
	struct proc_times t;
	uint64_t v;
	const char *p;
	int field;

	/* The name is in parentheses and may hold some: the last one counts. */
	if ((p = memrchr(text, ')', len)) == NULL)
		return -1;
	s.p = p + 1;
	for (field = 3; scan_word(&s, &word); field++) {
		if (field != STAT_UTIME && field != STAT_STIME &&
		    field != STAT_STARTTIME)
			continue;
		if (!scan_u64(&word, &v))
			return -1;
		if (field == STAT_UTIME)
			t.user = v;
		else if (field == STAT_STIME)
			t.kernel = v;
		else {
			t.start = v;
			*out = t;
			return 0;
		}
	}
	return -1;
}
