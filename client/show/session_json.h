/* session_json: a session as JSON. */
#ifndef CLIENT_SHOW_SESSION_JSON_H
#define CLIENT_SHOW_SESSION_JSON_H

struct Tributary__SessionState;
struct json_out;

/*
 * Writes an object as a member of this key; NULL: as an array's element.
 * collector: that has the session, NULL where there is but one.
 */
void session_json(struct json_out *j, const char *key, const char *collector,
    const struct Tributary__SessionState *s);

#endif /* CLIENT_SHOW_SESSION_JSON_H */
