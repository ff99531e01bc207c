/*
 * job_config: the trace configs of jobs.
 */
#ifndef TESTS_OOM_JOB_CONFIG_H
#define TESTS_OOM_JOB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/oom/job.h"

#define JOB_TRIGGER "now"
#define JOB_SESSION "oom" /* its unique_session_name, where it has one */

/* Encoded; the caller frees it. */
uint8_t *job_config(enum job_kind kind, size_t *len);
bool job_has_filter(enum job_kind kind);

#endif /* TESTS_OOM_JOB_CONFIG_H */
