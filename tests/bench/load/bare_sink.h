/*
 * bare_sink: `tributary-load sink`: the least that anybody can do with what
 * devices send: speaks as much of the protocol as they need to write, and
 * throws it away.
 */
#ifndef TESTS_BENCH_LOAD_BARE_SINK_H
#define TESTS_BENCH_LOAD_BARE_SINK_H

#include "transport/base/compiler.h"

int bare_sink_main(int argc, char **argv) MUST_CHECK;

#endif /* TESTS_BENCH_LOAD_BARE_SINK_H */
