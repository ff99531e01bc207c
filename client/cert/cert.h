/*
 * cert: `tributary cert`, the certificates of a collector and its devices.
 */
#ifndef CLIENT_CERT_CERT_H
#define CLIENT_CERT_CERT_H

/* argv[0] is "cert"; returns the exit status. */
int cert_main(int argc, char **argv);

#endif /* CLIENT_CERT_CERT_H */
