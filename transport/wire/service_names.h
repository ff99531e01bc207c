/*
 * service_names: names of our own services in BindService, beside Perfetto's
 * ProducerPort, ConsumerPort and RelayPort, and of our own methods.
 */
#ifndef TRANSPORT_WIRE_SERVICE_NAMES_H
#define TRANSPORT_WIRE_SERVICE_NAMES_H

#define LINK_SERVICE    "TributaryLink"
#define CONTROL_SERVICE "TributaryControl"

/*
 * Methods of our ProducerPort beyond Perfetto's, for producers that have no
 * relay: InitRelay, whose reply says in field 1 whether the clocks are to be
 * measured, and SyncClock.  docs/link-protocol.md.
 */
#define PRODUCER_INIT_MACHINE "TributaryInitMachine"
#define PRODUCER_SYNC_CLOCK   "TributarySyncClock"
enum { PRODUCER_MACHINE_TO_BE_MEASURED = 1 };

#endif /* TRANSPORT_WIRE_SERVICE_NAMES_H */
