/*
 * packets: `tributary inspect --packets` and `--convert`: a trace's
 * packets as text, and a timestamp in the trace clock.
 */
#ifndef CLIENT_INSPECT_PACKETS_H
#define CLIENT_INSPECT_PACKETS_H

struct inspect_options;

/* Print packets or the time; return the exit status. */
int inspect_packets_run(const struct inspect_options *o);
int inspect_convert_run(const struct inspect_options *o);

#endif /* CLIENT_INSPECT_PACKETS_H */
