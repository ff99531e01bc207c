#include <errno.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/clock/clock_jumps.h"

/* A time that never comes: the timer only ever ends by being cancelled. */
static int
arm(int fd)
{
	struct itimerspec never = {
		.it_value.tv_sec = (time_t)(INT64_MAX / 1000000000),
	};

	return timerfd_settime(fd, TFD_TIMER_ABSTIME |
	    TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

int
clock_jumps_open(void)
{
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd >= 0 && arm(fd) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool
clock_jumps_read(int fd)
{
	uint64_t ticks;

	if (read(fd, &ticks, sizeof(ticks)) >= 0 || errno != ECANCELED)
		return false;
	(void)arm(fd);
	return true;
}
