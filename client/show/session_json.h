/* session_json: a session, for programs. */
#ifndef CLIENT_SHOW_SESSION_JSON_H
#define CLIENT_SHOW_SESSION_JSON_H

struct Tributary__SessionState;
struct json_out;

/* A member of an object; key NULL: an element of an array. */
void session_json(struct json_out *j, const char *key,
    const struct Tributary__SessionState *s);

#endif /* CLIENT_SHOW_SESSION_JSON_H */
