#include "tests/bench/load/load_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/load/chunker.h"
#include "transport/base/size_duration.h"
#include "transport/connect/dial_flags.h"

enum {
	OPT_CONNECT, OPT_TLS_CERTS, OPT_NO_SHM, OPT_PRODUCERS,
	OPT_RELAYS, OPT_CLASSIC, OPT_NAME, OPT_SOURCE, OPT_WRITERS, OPT_RATE,
	OPT_TOTAL_RATE, OPT_SIZE, OPT_BIG, OPT_PATCHES, OPT_STATE, OPT_REPEAT,
	OPT_CHUNKS, OPT_REPLY_EVERY, OPT_BURST, OPT_PACKETS, OPT_STAY, OPT_SHM_KB,
	OPT_RAMP, OPT_IDLE, OPT_DURATION, OPT_CHURN, OPT_SLOW, OPT_SLOW_MS,
	OPT_HOSTILE, OPT_LEDGER, OPT_FIRST_KEY, OPT_CONSUMER, OPT_SESSION,
	OPT_CONFIG, OPT_STREAM, OPT_BUFFER, OPT_CONTROL, OPT_PID, OPT_DAEMON,
	OPT_DAEMON_CONFIG, OPT_SEED, OPT_QUIET
};

static const char *const slow_names[SLOW_KINDS] = {
	[SLOW_NOT] = "",
	[SLOW_READS] = "reads",
	[SLOW_ANSWERS] = "answers",
	[SLOW_NEVER] = "never",
};

static const char *const hostile_names[HOSTILE_KINDS] = {
	[HOSTILE_MUTE] = "mute",
	[HOSTILE_HALF] = "half",
	[HOSTILE_GARBAGE] = "garbage",
	[HOSTILE_TOO_BIG] = "too-big",
	[HOSTILE_FLOOD] = "flood",
	[HOSTILE_WRONG_IDS] = "wrong-ids",
	[HOSTILE_FORGED] = "forged",
	[HOSTILE_REGISTRATIONS] = "registrations",
};

static const char *const churn_names[] = {
	[CHURN_CLEAN] = "clean",
	[CHURN_CUT] = "cut",
	[CHURN_VANISH] = "vanish",
	[CHURN_MIXED] = "mixed",
};

const char *
load_hostile_text(unsigned kind)
{
	return hostile_names[kind];
}

static bool
read_number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*out = strtoull(text, &end, 10);
	return *end == '\0' && *out <= max;
}

/* "200", "10K", "50M", "1G": bytes by the thousand, as rates are. */
static bool
read_bytes(const char *text, uint64_t *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || v < 0)
		return false;
	if (*end == 'K' || *end == 'k')
		v *= 1e3;
	else if (*end == 'M')
		v *= 1e6;
	else if (*end == 'G')
		v *= 1e9;
	else if (*end != '\0')
		return false;
	end += *end != '\0';
	*out = (uint64_t)v;
	return *end == '\0';
}

/* "90", "1.5": seconds; also "200ms", "5m", "1h". */
static bool
read_time(const char *text, uint64_t *ms)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || v < 0)
		return false;
	if (strcmp(end, "ms") == 0)
		*ms = (uint64_t)v;
	else if (*end == '\0' || strcmp(end, "s") == 0)
		*ms = (uint64_t)(v * 1000);
	else if (strcmp(end, "m") == 0)
		*ms = (uint64_t)(v * 60000);
	else if (strcmp(end, "h") == 0)
		*ms = (uint64_t)(v * 3600000);
	else
		return false;
	return true;
}

/* "MIN-MAX", or one size. */
static bool
read_range(const char *text, size_t *min, size_t *max)
{
	const char *dash = strchr(text, '-');
	char first[32];
	uint64_t a, b;

	snprintf(first, sizeof(first), "%.*s", dash != NULL ?
	    (int)(dash - text) : (int)strlen(text), text);
	if (!read_bytes(first, &a) ||
	    !read_bytes(dash != NULL ? dash + 1 : first, &b) || b < a ||
	    b > 1000000)
		return false;
	*min = a;
	*max = b;
	return true;
}

/* "PERCENT:BYTES" */
static bool
read_big(const char *text, uint32_t *per_mille, size_t *size)
{
	uint64_t bytes;
	char *end;
	double percent = strtod(text, &end);

	if (end == text || *end != ':' || percent < 0 || percent > 100 ||
	    !read_bytes(end + 1, &bytes) || bytes > 1000000)
		return false;
	*per_mille = (uint32_t)(percent * 10);
	*size = bytes;
	return true;
}

/* "KIND" or "KIND:COUNT", several with commas between. */
static bool
read_crowds(const char *text, const char *const *names, size_t n_names,
    struct load_crowd *out, size_t *n)
{
	char item[64], *colon;
	const char *end;
	uint64_t count;
	size_t k;

	for (; *text != '\0'; text = *end == ',' ? end + 1 : end) {
		end = strchrnul(text, ',');
		snprintf(item, sizeof(item), "%.*s", (int)(end - text), text);
		count = 1;
		if ((colon = strchr(item, ':')) != NULL)
			*colon = '\0';
		if (colon != NULL && !read_number(colon + 1, 100000, &count))
			return false;
		for (k = 0; k < n_names; k++)
			if (item[0] != '\0' && strcmp(names[k], item) == 0)
				break;
		if (k == n_names || *n == LOAD_CROWDS_MAX)
			return false;
		out[(*n)++] = (struct load_crowd){ (unsigned)k,
			(uint32_t)count };
	}
	return true;
}

/* "RATE" or "RATE:HOW" */
static bool
read_churn(const char *text, double *rate, enum load_churn *how)
{
	char *end;
	size_t k;

	*rate = strtod(text, &end);
	if (end == text || *rate < 0)
		return false;
	if (*end == '\0')
		return true;
	for (k = 0; *end == ':' && k < 4; k++)
		if (strcmp(churn_names[k], end + 1) == 0) {
			*how = (enum load_churn)k;
			return true;
		}
	return false;
}

static bool
read_rate(const char *text, uint64_t *out)
{
	if (strcmp(text, "max") != 0)
		return read_bytes(text, out);
	*out = LOAD_RATE_MAX;
	return true;
}

static bool
set32(const char *text, uint32_t max, uint32_t *out)
{
	uint64_t v;

	if (!read_number(text, max, &v))
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool
take_text(struct load_options *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_CONNECT:
		if (o->n_connect == LOAD_PLACES_MAX)
			return false;
		o->connect[o->n_connect++] = arg;
		return true;
	case OPT_TLS_CERTS:
		o->certs_dir = arg;
		return true;
	case OPT_NAME:
		o->name = arg;
		return true;
	case OPT_SOURCE:
		o->source = arg;
		return true;
	case OPT_LEDGER:
		o->ledger = arg;
		return true;
	case OPT_CONSUMER:
		o->consumer = arg;
		return true;
	case OPT_SESSION:
		o->session = arg;
		return true;
	case OPT_CONFIG:
		o->config = arg;
		return true;
	case OPT_DAEMON:
		o->daemon = arg;
		return true;
	case OPT_DAEMON_CONFIG:
		o->daemon_config = arg;
		return true;
	case OPT_NO_SHM:
		o->no_shm = true;
		return true;
	case OPT_CLASSIC:
		o->relay_protocol = RELAYS_CLASSIC;
		return true;
	case OPT_PATCHES:
		o->patches = true;
		return true;
	case OPT_STATE:
		o->state = true;
		return true;
	case OPT_REPEAT:
		o->repeat = true;
		return true;
	case OPT_STREAM:
		o->stream = true;
		return true;
	case OPT_QUIET:
		o->quiet = true;
		return true;
	}
	return false;
}

static bool
take(struct load_options *o, int opt, const char *arg)
{
	uint64_t v;

	switch (opt) {
	case OPT_PRODUCERS:
		return set32(arg, 1000000, &o->producers);
	case OPT_RELAYS:
		return set32(arg, 1000000, &o->relays);
	case OPT_WRITERS:
		return set32(arg, 1000, &o->writers);
	case OPT_RATE:
		return read_rate(arg, &o->rate);
	case OPT_TOTAL_RATE:
		return read_bytes(arg, &o->total_rate);
	case OPT_SIZE:
		return read_range(arg, &o->size_min, &o->size_max);
	case OPT_BIG:
		return read_big(arg, &o->big_per_mille, &o->big_size);
	case OPT_CHUNKS:
		return set32(arg, 64, &o->chunks) && o->chunks > 0;
	case OPT_REPLY_EVERY:
		return set32(arg, 1000000, &o->reply_every);
	case OPT_BURST:
		if (!read_time(arg, &v))
			return false;
		o->burst_ms = (uint32_t)v;
		return true;
	case OPT_PACKETS:
		return read_number(arg, UINT32_MAX, &o->packets);
	case OPT_STAY:
		o->stay = true;
		return true;
	case OPT_SHM_KB:
		return set32(arg, 32768, &o->shm_kb);
	case OPT_RAMP:
		return set32(arg, 1000000, &o->ramp);
	case OPT_IDLE:
		if (!read_time(arg, &v))
			return false;
		o->idle_ms = (uint32_t)v;
		return true;
	case OPT_DURATION:
		return read_time(arg, &o->duration_ms);
	case OPT_CHURN:
		return read_churn(arg, &o->churn, &o->churn_how);
	case OPT_SLOW:
		return read_crowds(arg, slow_names, SLOW_KINDS, o->slow,
		    &o->n_slow);
	case OPT_SLOW_MS:
		if (!read_time(arg, &v))
			return false;
		o->slow_ms = (uint32_t)v;
		return true;
	case OPT_HOSTILE:
		return read_crowds(arg, hostile_names, HOSTILE_KINDS,
		    o->hostile, &o->n_hostile);
	case OPT_FIRST_KEY:
		return set32(arg, 0xf0000000u, &o->first_key) &&
		    o->first_key > 0;
	case OPT_BUFFER:
		return set32(arg, UINT32_MAX, &o->buffer_kb);
	case OPT_CONTROL:
		v = 100;
		if (arg != NULL && !read_time(arg, &v))
			return false;
		o->control_ms = v > 0 ? (uint32_t)v : 1;
		return true;
	case OPT_PID:
		if (!read_number(arg, INT32_MAX, &v))
			return false;
		o->pid = (pid_t)v;
		return true;
	case OPT_SEED:
		return read_number(arg, UINT64_MAX, &o->seed);
	}
	return take_text(o, opt, arg);
}

static int
take_flag(void *options, const struct flag *flag, const char *arg, char *err,
    size_t err_size)
{
	if (take(options, flag->id, arg))
		return 0;
	snprintf(err, err_size, "--%s: not understood; see tributary-load "
	    "--help", flag->name);
	return -1;
}

#define TAKE(what) .take = take_flag, .id = what

static const struct flag table[] = {
	{ "connect", FLAG_VALUE, TAKE(OPT_CONNECT) },
	{ "tls-certs", FLAG_VALUE, TAKE(OPT_TLS_CERTS) },
	{ "no-shm", FLAG_NOTE, TAKE(OPT_NO_SHM) },
	{ "producers", FLAG_VALUE, TAKE(OPT_PRODUCERS) },
	{ "relays", FLAG_VALUE, TAKE(OPT_RELAYS) },
	{ "classic", FLAG_NOTE, TAKE(OPT_CLASSIC) },
	{ "name", FLAG_VALUE, TAKE(OPT_NAME) },
	{ "source", FLAG_VALUE, TAKE(OPT_SOURCE) },
	{ "writers", FLAG_VALUE, TAKE(OPT_WRITERS) },
	{ "rate", FLAG_VALUE, TAKE(OPT_RATE) },
	{ "total-rate", FLAG_VALUE, TAKE(OPT_TOTAL_RATE) },
	{ "size", FLAG_VALUE, TAKE(OPT_SIZE) },
	{ "big", FLAG_VALUE, TAKE(OPT_BIG) },
	{ "patches", FLAG_NOTE, TAKE(OPT_PATCHES) },
	{ "state", FLAG_NOTE, TAKE(OPT_STATE) },
	{ "repeat", FLAG_NOTE, TAKE(OPT_REPEAT) },
	{ "chunks", FLAG_VALUE, TAKE(OPT_CHUNKS) },
	{ "reply-every", FLAG_VALUE, TAKE(OPT_REPLY_EVERY) },
	{ "burst", FLAG_VALUE, TAKE(OPT_BURST) },
	{ "packets", FLAG_VALUE, TAKE(OPT_PACKETS) },
	{ "stay", FLAG_NOTE, TAKE(OPT_STAY) },
	{ "shm-kb", FLAG_VALUE, TAKE(OPT_SHM_KB) },
	{ "ramp", FLAG_VALUE, TAKE(OPT_RAMP) },
	{ "idle", FLAG_VALUE, TAKE(OPT_IDLE) },
	{ "duration", FLAG_VALUE, TAKE(OPT_DURATION) },
	{ "churn", FLAG_VALUE, TAKE(OPT_CHURN) },
	{ "slow", FLAG_VALUE, TAKE(OPT_SLOW) },
	{ "slow-by", FLAG_VALUE, TAKE(OPT_SLOW_MS) },
	{ "hostile", FLAG_VALUE, TAKE(OPT_HOSTILE) },
	{ "ledger", FLAG_VALUE, TAKE(OPT_LEDGER) },
	{ "first-key", FLAG_VALUE, TAKE(OPT_FIRST_KEY) },
	{ "consumer", FLAG_VALUE, TAKE(OPT_CONSUMER) },
	{ "session", FLAG_VALUE, TAKE(OPT_SESSION) },
	{ "config", FLAG_VALUE, TAKE(OPT_CONFIG) },
	{ "stream", FLAG_NOTE, TAKE(OPT_STREAM) },
	{ "buffer", FLAG_VALUE, TAKE(OPT_BUFFER) },
	{ "control", FLAG_MAYBE, TAKE(OPT_CONTROL) },
	{ "pid", FLAG_VALUE, TAKE(OPT_PID) },
	{ "daemon", FLAG_VALUE, TAKE(OPT_DAEMON) },
	{ "daemon-config", FLAG_VALUE, TAKE(OPT_DAEMON_CONFIG) },
	{ "seed", FLAG_VALUE, TAKE(OPT_SEED) },
	{ "quiet", FLAG_NOTE, TAKE(OPT_QUIET) },
	{ "help", .kind = FLAG_HELP },
	DIAL_FLAGS(offsetof(struct load_options, how)),
	{ .name = NULL },
};


static const struct flags flags = {
	.table = table,
	.speaker = "tributary-load",
	.help_is_at = "see tributary-load --help",
};

static const char *
conflict(const struct load_options *o)
{
	if (o->n_connect == 0)
		return "say where: --connect ADDRESS";
	if ((o->session != NULL || o->control_ms > 0) &&
	    o->consumer == NULL && o->daemon == NULL)
		return "--session and --control need --consumer ADDRESS";
	if (o->config != NULL && o->session == NULL)
		return "--config needs --session FILE";
	if (o->relays == 0 && o->relay_protocol == RELAYS_CLASSIC)
		return "--classic needs --relays N";
	if (o->size_min < 64)
		return "packets have at least 64 bytes (--size)";
	if (o->repeat && (o->ledger != NULL || o->patches ||
	    o->big_per_mille > 0))
		return "--repeat writes the same whole packets again, which "
		    "nobody can tell apart: not with --ledger, --patches or "
		    "--big";
	if (o->repeat && o->size_max > CHUNKER_REPEAT_MAX)
		return "packets of --repeat have at most 4000 bytes (--size)";
	if (o->first_key + (uint64_t)o->producers > 0xf0000000u)
		return "--first-key is too large";
	if (o->daemon != NULL && o->pid != 0)
		return "--pid and --daemon exclude each other";
	return NULL;
}

enum load_parsed
load_options_parse(struct load_options *o, int argc, char **argv, char *err,
    size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;
	const char *wrong;

	*o = (struct load_options){
		.producers = 1, .name = "load", .source = "tributary.load",
		.writers = 1, .rate = 10000, .size_min = 100,
		.size_max = 300, .chunks = 1, .reply_every = 8,
		.slow_ms = 1000, .first_key = 1, .buffer_kb = 65536,
	};
	verdict = flags_parse(&flags, o, &words, err, err_size);
	if (verdict != FLAGS_RUN)
		return verdict == FLAGS_HELP ? LOAD_PARSED_HELP :
		    LOAD_PARSED_BAD;
	wrong = words.argc > 0 ? "arguments that belong to no option" :
	    conflict(o);
	if (wrong == NULL)
		return LOAD_PARSED;
	snprintf(err, err_size, "%s", wrong);
	return LOAD_PARSED_BAD;
}
