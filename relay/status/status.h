/*
 * status: `tributary-relay --status` and `--metrics`: asks the relay of this
 * machine for its report, and shows it.
 */
#ifndef RELAY_STATUS_STATUS_H
#define RELAY_STATUS_STATUS_H

#include <stdbool.h>
#include <stdio.h>

#include "transport/base/compiler.h"

struct relay_settings;
struct Tributary__RelayReport;

enum status_form {
	STATUS_TEXT,
	STATUS_JSON,
	STATUS_METRICS, /* as Prometheus reads them */
};

/*
 * Returns the exit status; prints failures on standard error.  named: a flag
 * names the state folder, so that no other is tried.
 */
int status_show(const struct relay_settings *s, bool named,
    enum status_form form)
    MUST_CHECK;

/* Prints a report as text for people. */
void status_print(FILE *out, const struct Tributary__RelayReport *r);

#endif /* RELAY_STATUS_STATUS_H */
