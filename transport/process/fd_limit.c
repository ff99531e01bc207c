#include "transport/process/fd_limit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "transport/base/log.h"

void
fd_limit_raise(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == r.rlim_max)
		return;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) != 0)
		log_warn("cannot raise the limit of open files: %s",
		    strerror(errno));
}
