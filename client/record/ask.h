/*
 * ask: questions of `tributary record`: the state of the service (--query,
 * --query-raw), and whether a session is detached (--is_detached).
 */
#ifndef CLIENT_RECORD_ASK_H
#define CLIENT_RECORD_ASK_H

struct record_options;

/*
 * Return exit statuses.  record_ask_is_detached(): 0 yes, 2 no, 1 for an error;
 * it attaches to the session and detaches it again, as the protocol has no
 * question for that.
 */
int record_ask_state(const struct record_options *o);
int record_ask_is_detached(const struct record_options *o);

#endif /* CLIENT_RECORD_ASK_H */
