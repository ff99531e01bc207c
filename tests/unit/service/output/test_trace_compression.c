#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/text_parse.h"
#include "service/config/config.h"
#include "service/output/trace_compression.h"
#include "service/settings/settings.h"

/* How a trace with this config, and a clone of it, is compressed. */
static struct packet_compression
compression(const char *text)
{
	struct settings settings;
	struct packet_compression how, clones;
	struct config *c, *copy;
	uint8_t *bytes;
	size_t len;
	char err[200];

	assert_int_equal(settings_init(&settings), 0);
	assert_int_equal(text_parse(&perfetto__protos__trace_config__descriptor,
	    text, strlen(text), &bytes, &len, NULL), 0);
	c = config_new(bytes, len, false, &settings.limits, err, sizeof(err));
	assert_non_null(c);
	assert_non_null(copy = config_copy(c));
	how = trace_compression(c);
	clones = trace_compression(copy);
	assert_int_equal(how.kind, clones.kind);
	assert_int_equal(how.level, clones.level);
	config_free(copy);
	config_free(c);
	free(bytes);
	settings_done(&settings);
	return how;
}

#define BUFFER "buffers { size_kb: 64 } "

static void
each_field_names_its_kind(void **state)
{
	assert_int_equal(compression(BUFFER).kind, PACKET_PLAIN);
	assert_int_equal(compression(BUFFER
	    "compression_type: COMPRESSION_TYPE_UNSPECIFIED").kind,
	    PACKET_PLAIN);
	assert_int_equal(compression(BUFFER
	    "compression_type: COMPRESSION_TYPE_DEFLATE").kind,
	    PACKET_DEFLATE);
	assert_int_equal(compression(BUFFER "compression { deflate {} }").kind,
	    PACKET_DEFLATE);
	assert_int_equal(compression(BUFFER "compression { zstd {} }").kind,
	    PACKET_ZSTD);
	assert_int_equal(compression(BUFFER "compression { zstd {} }").level,
	    0);
	assert_int_equal(compression(BUFFER
	    "compression { zstd { level: 9 } }").level, 9);
	assert_int_equal(compression(BUFFER
	    "compression { zstd { level: -5 } }").level, -5);
}

static void
the_newer_field_wins(void **state)
{
	assert_int_equal(compression(BUFFER
	    "compression_type: COMPRESSION_TYPE_DEFLATE "
	    "compression { zstd {} }").kind, PACKET_ZSTD);
	assert_int_equal(compression(BUFFER
	    "compression_type: COMPRESSION_TYPE_DEFLATE "
	    "compression {}").kind, PACKET_DEFLATE);
	assert_int_equal(compression(BUFFER
	    "compression { deflate {} zstd {} }").kind, PACKET_ZSTD);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_names_its_kind),
		cmocka_unit_test(the_newer_field_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
