/*
 * ask: questions of `tributary record`: the state of the service (--query,
 * --query-raw), and whether a session is detached (--is_detached).
 */
#ifndef CLIENT_RECORD_ASK_H
#define CLIENT_RECORD_ASK_H

struct record_options;

/*
 * Exit statuses.  is_detached: 0 yes, 2 no, 1 when it cannot be found out; it
 * attaches and detaches again, as there is no other way to ask.
 */
int record_ask_state(const struct record_options *o);
int record_ask_is_detached(const struct record_options *o);

#endif /* CLIENT_RECORD_ASK_H */
