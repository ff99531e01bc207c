/*
 * policy: an operator's choices for data that waits.  The outbox, which acts on
 * them, needs no other setting.
 */
#ifndef RELAY_SETTINGS_POLICY_H
#define RELAY_SETTINGS_POLICY_H

/* When the spool is synced, so that it survives a power cut. */
enum relay_fsync {
	RELAY_FSYNC_NEVER,
	RELAY_FSYNC_PERIODIC, /* once a second */
	RELAY_FSYNC_ALWAYS,   /* every block, before it leaves memory */
};

/* Which data goes when memory and spool are full. */
enum relay_drop {
	RELAY_DROP_OLDEST,
	RELAY_DROP_NEWEST,
};

#endif /* RELAY_SETTINGS_POLICY_H */
