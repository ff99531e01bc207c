/*
 * liveness: whether the collector at the other end of a connection is still
 * there.  It is dead when it owes an acknowledgement or a PONG and is silent
 * for too long; owing nothing, it may be silent.
 *
 * A slow network is no dead one: before the end a PING asks the collector for a
 * sign of life.  Pure; times are loop_now_ms(), in milliseconds.
 */
#ifndef RELAY_UPLINK_LIVENESS_H
#define RELAY_UPLINK_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/* Silence until the collector is asked, and then until it is dead. */
#define WATCH_PROBE_MS 6000u
#define WATCH_DEAD_MS  6000u
/* Both, where the network has just come back. */
#define WATCH_HURRY_PROBE_MS 1000u
#define WATCH_HURRY_DEAD_MS  2000u

/* Zero-initialised is ready for use. */
struct uplink_liveness {
	bool owes_ack;   /* for a block */
	bool owes_pong;
	/* Time of the last sign of life, or when the debt began, if later. */
	uint64_t since_ms;
	bool probed;     /* asked since then */
	uint64_t probed_ms;
	uint64_t patience_ms; /* from probed_ms until it is dead */
};

enum uplink_liveness_verdict {
	WATCH_IDLE,  /* nothing is owed: look again after a block or PING */
	WATCH_WAIT,  /* look again after *again_ms */
	WATCH_PROBE, /* send a PING, then look again after *again_ms */
	WATCH_DEAD,  /* end the connection */
};

/* Notes that something arrived. */
void uplink_liveness_heard(struct uplink_liveness *w, uint64_t now_ms);
/* Notes that a block, or a PING, was sent. */
void uplink_liveness_sent_block(struct uplink_liveness *w, uint64_t now_ms);
void uplink_liveness_sent_ping(struct uplink_liveness *w, uint64_t now_ms);
/* Notes that all blocks are acknowledged; that a PONG came. */
void uplink_liveness_all_acked(struct uplink_liveness *w);
void uplink_liveness_ponged(struct uplink_liveness *w);
/*
 * Notes that the network came back: bytes sent before may wait long for TCP to
 * send them again.  True: the collector owes something and is silent, so send a
 * PING now; look again after WATCH_HURRY_DEAD_MS.
 */
bool uplink_liveness_hurry(struct uplink_liveness *w, uint64_t now_ms);
/* Decides what to do now; *again_ms is set for WAIT and PROBE. */
enum uplink_liveness_verdict uplink_liveness_look(struct uplink_liveness *w,
    uint64_t now_ms, uint64_t *again_ms);

#endif /* RELAY_UPLINK_LIVENESS_H */
