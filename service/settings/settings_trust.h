/*
 * settings_trust: the part of the settings about the identity and the roles of
 * peers: rules, dials, certificates.  For settings*.c only; other files include
 * settings.h.
 */
#ifndef SERVICE_SETTINGS_SETTINGS_TRUST_H
#define SERVICE_SETTINGS_SETTINGS_TRUST_H

struct settings;

/* Frees rules, dials and the names of certificates. */
void settings_trust_done(struct settings *s);

#endif /* SERVICE_SETTINGS_SETTINGS_TRUST_H */
