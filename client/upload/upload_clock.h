/* upload_clock: the clocks and random numbers of the uploader. */
#ifndef CLIENT_UPLOAD_UPLOAD_CLOCK_H
#define CLIENT_UPLOAD_UPLOAD_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME: pauses go on while the machine sleeps. */
uint64_t upload_clock_ms(void);
uint64_t upload_clock_wall_ns(void);
/* 0 where the kernel has none yet. */
uint32_t upload_clock_random(void);

#endif /* CLIENT_UPLOAD_UPLOAD_CLOCK_H */
