/*
 * fleet: `tributary record` over several collectors: one config and one uuid,
 * armed everywhere, started together and stopped together, one live line; then
 * fleet_result makes one ZIP of it.
 */
#ifndef CLIENT_RECORD_FLEET_H
#define CLIENT_RECORD_FLEET_H

#include <stdint.h>

struct record_config;
struct record_options;

/* config is borrowed.  Returns the exit status. */
int record_fleet(const struct record_options *o,
    const struct record_config *config, uint64_t delay_ms);

#endif /* CLIENT_RECORD_FLEET_H */
