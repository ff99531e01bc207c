/*
 * process_names: names of this process and of the calling thread, as /proc and
 * the kernel have them.
 */
#ifndef CLIENT_TRACING_EVENT_PROCESS_NAMES_H
#define CLIENT_TRACING_EVENT_PROCESS_NAMES_H

struct tributary_packet;

#define PROCESS_NAME_MAX 256

/* The calling thread's: as set by tributary_set_thread_name(), else its comm. */
void thread_name(char out[PROCESS_NAME_MAX]);
void thread_set_name(const char *name);
/* The program's name: the first argument without its path. */
void process_name(char out[PROCESS_NAME_MAX]);
/* ProcessDescriptor.cmdline, up to 4 KiB. */
void process_put_command_line(struct tributary_packet *p);

#endif /* CLIENT_TRACING_EVENT_PROCESS_NAMES_H */
