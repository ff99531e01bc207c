/*
 * load_ca: a private CA for a test's or a benchmark's own use, made in memory;
 * only what a collector and a device need is written down.
 */
#ifndef TESTS_LOAD_LOAD_CA_H
#define TESTS_LOAD_LOAD_CA_H

/* The directories (--tls-dir) within the folder. */
#define LOAD_CA_COLLECTOR "collector" /* for 127.0.0.1 and localhost */
#define LOAD_CA_DEVICE    "device"

/* P-256 keys, certificates good for a day.  folder exists and is empty. */
void load_ca_make(const char *folder);
/* Removes what load_ca_make() made, not the folder. */
void load_ca_remove(const char *folder);

#endif /* TESTS_LOAD_LOAD_CA_H */
