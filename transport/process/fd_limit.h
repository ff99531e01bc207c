/*
 * fd_limit: raises the limit of open files (RLIMIT_NOFILE) of this process.
 */
#ifndef TRANSPORT_PROCESS_FD_LIMIT_H
#define TRANSPORT_PROCESS_FD_LIMIT_H

/* Raises the soft limit to the hard one; failing is logged, nothing else. */
void fd_limit_raise(void);

#endif /* TRANSPORT_PROCESS_FD_LIMIT_H */
