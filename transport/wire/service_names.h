/*
 * service_names: names of our own services in BindService, beside Perfetto's
 * ProducerPort, ConsumerPort and RelayPort.
 */
#ifndef TRANSPORT_WIRE_SERVICE_NAMES_H
#define TRANSPORT_WIRE_SERVICE_NAMES_H

#define LINK_SERVICE    "TributaryLink"
#define CONTROL_SERVICE "TributaryControl"

#endif /* TRANSPORT_WIRE_SERVICE_NAMES_H */
