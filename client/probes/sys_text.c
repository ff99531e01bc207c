#include "client/probes/sys_text.h"

#include <string.h>

#include "client/probes/scan.h"
#include "client/probes/sys_keys.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/*
 * MeminfoValue, VmstatValue, InterruptCount or PsiSample: two varints, so that
 * the length is one byte, and nothing has to be nested.
 */
static void
put_pair(struct pb_writer *w, uint32_t field, uint64_t key, uint64_t value)
{
	uint8_t b[24];
	size_t n = 0;

	b[n++] = PB_TAG(MeminfoValue_key, PB_VARINT);
	n += pb_encode_varint(b + n, key);
	b[n++] = PB_TAG(MeminfoValue_value, PB_VARINT);
	n += pb_encode_varint(b + n, value);
	pb_put_bytes(w, field, b, n);
}

void
sys_text_counters(struct pb_writer *w, uint32_t field,
    const struct sys_keys *keys, const char *text, size_t len)
{
	struct scan s = scan_text(text, len), line, name;
	uint64_t v;
	int id;

	while (scan_line(&s, &line)) {
		if (!scan_word(&line, &name))
			continue;
		/* "MemTotal:   24684096 kB", "nr_free_pages 1172609" */
		if (name.end[-1] == ':')
			name.end--;
		id = sys_keys_find(keys, name.p, scan_len(&name));
		if (id != 0 && scan_u64(&line, &v))
			put_pair(w, field, (uint64_t)id, v);
	}
}

/* ---- /proc/stat ---- */

/* user nice system idle iowait irq softirq steal: fields 2 to 9 */
#define CPU_TIMES 8u

static void
put_cpu(struct pb_writer *w, uint64_t cpu, uint64_t ns_per_tick,
    struct scan line)
{
	uint64_t ticks;
	uint32_t i;
	size_t mark;

	mark = pb_nest_begin(w, SysStats_cpu_stat);
	pb_put_uint(w, CpuTimes_cpu_id, cpu);
	for (i = 0; i < CPU_TIMES; i++)
		pb_put_uint(w, CpuTimes_user_ns + i,
		    scan_u64(&line, &ticks) ? ticks * ns_per_tick : 0);
	pb_nest_end(w, mark);
}

/* "intr TOTAL IRQ0 IRQ1 ...": interrupts with a count of 0 are left out. */
static void
put_interrupts(struct pb_writer *w, uint32_t total,
    uint32_t each, bool with_zeroes, struct scan line)
{
	uint64_t v, irq;

	if (!scan_u64(&line, &v))
		return;
	pb_put_uint(w, total, v);
	for (irq = 0; scan_u64(&line, &v); irq++)
		if (v != 0 || with_zeroes)
			put_pair(w, each, irq, v);
}

void
sys_text_stat(struct pb_writer *w, unsigned wanted, uint64_t ns_per_tick,
    const char *text, size_t len)
{
	struct scan s = scan_text(text, len), line, name;
	uint64_t v;

	while (scan_line(&s, &line)) {
		if (!scan_word(&line, &name))
			continue;
		if (scan_begins(&name, "cpu")) {
			/* "cpu" alone is the sum */
			name.p += 3;
			if ((wanted & SYS_STAT_CPU_TIMES) != 0 &&
			    scan_u64(&name, &v) && name.p == name.end)
				put_cpu(w, v, ns_per_tick, line);
		} else if (scan_is(&name, "intr")) {
			if ((wanted & SYS_STAT_IRQ_COUNTS) != 0)
				put_interrupts(w, SysStats_num_irq_total,
				    SysStats_num_irq, false, line);
		} else if (scan_is(&name, "softirq")) {
			if ((wanted & SYS_STAT_SOFTIRQ_COUNTS) != 0)
				put_interrupts(w, SysStats_num_softirq_total,
				    SysStats_num_softirq, true, line);
		} else if (scan_is(&name, "processes")) {
			if ((wanted & SYS_STAT_FORK_COUNT) != 0 &&
			    scan_u64(&line, &v))
				pb_put_uint(w, SysStats_num_forks, v);
		}
	}
}

/* ---- the others ---- */

/* "Node 0, zone   Normal      1     73    834 ..." */
void
sys_text_buddyinfo(struct pb_writer *w, const char *text, size_t len)
{
	struct scan s = scan_text(text, len), line, word, node, zone;
	uint64_t v;
	size_t mark;

	while (scan_line(&s, &line)) {
		if (!scan_word(&line, &word) || !scan_is(&word, "Node") ||
		    !scan_word(&line, &node) ||
		    !scan_word(&line, &word) || !scan_is(&word, "zone") ||
		    !scan_word(&line, &zone))
			continue;
		if (node.end[-1] == ',')
			node.end--;
		mark = pb_nest_begin(w, SysStats_buddy_info);
		pb_put_bytes(w, BuddyInfo_node, node.p, scan_len(&node));
		pb_put_bytes(w, BuddyInfo_zone, zone.p, scan_len(&zone));
		while (scan_u64(&line, &v))
			pb_put_uint(w, BuddyInfo_order_pages, (uint32_t)v);
		pb_nest_end(w, mark);
	}
}

void
sys_text_diskstats(struct pb_writer *w, const char *text, size_t len)
{
	/*
	 * DiskStat's field for each number after the device's name; 0: not
	 * recorded.  Discards came with Linux 4.18, flushes with 5.5.
	 */
	static const uint8_t field_of[] = {
		[2] = DiskStat_read_sectors, DiskStat_read_time_ms,
		[6] = DiskStat_write_sectors, DiskStat_write_time_ms,
		[13] = DiskStat_discard_sectors,
		DiskStat_discard_time_ms,
		DiskStat_flush_count, DiskStat_flush_time_ms,
	};
	struct scan s = scan_text(text, len), line, name;
	uint64_t v;
	size_t i, mark;

	while (scan_line(&s, &line)) {
		/* major, minor, name */
		if (!scan_u64(&line, &v) || !scan_u64(&line, &v) ||
		    !scan_word(&line, &name))
			continue;
		mark = pb_nest_begin(w, SysStats_disk_stat);
		pb_put_bytes(w, DiskStat_device_name, name.p, scan_len(&name));
		for (i = 0; i < sizeof(field_of) && scan_u64(&line, &v); i++)
			if (field_of[i] != 0)
				pb_put_uint(w, field_of[i], v);
		pb_nest_end(w, mark);
	}
}

/* "some avg10=0.00 avg60=0.00 avg300=0.07 total=9390407", in microseconds */
void
sys_text_psi(struct pb_writer *w, enum sys_psi resource, const char *text,
    size_t len)
{
	struct scan s = scan_text(text, len), line, word;
	uint64_t key, total;

	while (scan_line(&s, &line)) {
		if (!scan_word(&line, &word))
			continue;
		if (scan_is(&word, "some"))
			key = resource;
		else if (scan_is(&word, "full"))
			key = (uint64_t)resource + 1;
		else
			continue;
		while (scan_word(&line, &word)) {
			if (!scan_begins(&word, "total="))
				continue;
			word.p += strlen("total=");
			if (scan_u64(&word, &total))
				put_pair(w, SysStats_psi, key, total * 1000);
		}
	}
}

/*
 * "NAME active num size perslab PAGESPERSLAB : tunables a b c : slabdata
 * active NUM_SLABS shared"
 */
void
sys_text_slabinfo(struct pb_writer *w, const char *text, size_t len)
{
	struct scan s = scan_text(text, len), line, name, word;
	uint64_t pages, slabs;
	size_t mark;
	int i;

	while (scan_line(&s, &line)) {
		if (!scan_word(&line, &name) || *name.p == '#')
			continue;
		for (i = 0; i < 5 && scan_u64(&line, &pages);)
			i++;
		if (i < 5)
			continue; /* the first line, or another version */
		while (scan_word(&line, &word))
			if (scan_is(&word, "slabdata"))
				break;
		if (!scan_u64(&line, &slabs) || !scan_u64(&line, &slabs))
			continue;
		mark = pb_nest_begin(w, SysStats_slab_info);
		pb_put_bytes(w, SlabInfo_name, name.p, scan_len(&name));
		pb_put_uint(w, SlabInfo_pages_per_slab, (uint32_t)pages);
		pb_put_uint(w, SlabInfo_num_slabs, (uint32_t)slabs);
		pb_nest_end(w, mark);
	}
}

bool
sys_text_number(const char *text, size_t len, int64_t *out)
{
	struct scan s = scan_text(text, len);
	bool minus = len > 0 && *text == '-';
	uint64_t v;

	if (minus)
		s.p++;
	if (!scan_u64(&s, &v) || v > INT64_MAX)
		return false;
	*out = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

bool
sys_text_amd_clock(const char *text, size_t len, uint64_t *mhz)
{
	struct scan s = scan_text(text, len), line, word;
	uint64_t v;

	while (scan_line(&s, &line)) {
		if (line.p == line.end || line.end[-1] != '*')
			continue;
		while (scan_word(&line, &word))
			if (scan_u64(&word, &v) && scan_is(&word, "Mhz")) {
				*mhz = v;
				return true;
			}
	}
	return false;
}
