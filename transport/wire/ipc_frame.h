/*
 * ipc_frame: reads and writes IPCFrame messages in place (reference
 * wire-format.md, "IPC ports and frames").
 *
 * Pure and without allocation: what a parser returns points into its input.
 * Fields it does not know, or of another wire type, are skipped.
 */
#ifndef TRANSPORT_WIRE_IPC_FRAME_H
#define TRANSPORT_WIRE_IPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/fields.h"
#include "transport/base/compiler.h"
#include "transport/wire/frame.h"

struct pb_writer;

/* The field numbers of IPCFrame's oneof. */
enum ipc_kind {
	IPC_NONE = 0, /* no message, or one that we do not know */
	IPC_BIND_SERVICE = IPCFrame_msg_bind_service,
	IPC_BIND_SERVICE_REPLY = IPCFrame_msg_bind_service_reply,
	IPC_INVOKE_METHOD = IPCFrame_msg_invoke_method,
	IPC_INVOKE_METHOD_REPLY = IPCFrame_msg_invoke_method_reply,
	IPC_REQUEST_ERROR = IPCFrame_msg_request_error,
	IPC_SET_PEER_IDENTITY = IPCFrame_set_peer_identity,
};

/* Bytes inside the frame; NULL when the field is absent. */
struct ipc_slice {
	const uint8_t *data;
	size_t len;
};

struct ipc_frame {
	enum ipc_kind kind;
	uint64_t request_id;
	struct ipc_slice body; /* the message of that kind, still encoded */
};

struct ipc_invoke {
	uint32_t service_id;
	uint32_t method_id;
	bool drop_reply;
	struct ipc_slice args;
};

struct ipc_invoke_reply {
	bool success;
	bool has_more;
	struct ipc_slice reply;
};

struct ipc_identity {
	int32_t pid;
	int32_t uid;
	struct ipc_slice machine_id_hint;
	struct ipc_slice machine_name;
	struct ipc_slice clocks; /* field 1002, ours: this_machine_clocks() */
	/*
	 * Field 1001, ours: the peer, over a UNIX socket, forwards the bytes of
	 * another program (`tributary connect`), which the rest is about.
	 */
	bool forwarded;
};

struct ipc_bind_reply {
	bool success;
	uint32_t service_id;
};

struct ipc_method_info {
	uint32_t id;
	struct ipc_slice name;
};

/*
 * Whether the first bytes of a peer are TLS: taken for a frame, its first
 * record would be the beginning of one of 64 KiB, whose rest never comes.
 */
static inline bool
ipc_begins_with_tls(const uint8_t *buf, size_t len)
{
	return len >= 3 && buf[0] == 0x16 && buf[1] == 0x03 && buf[2] >= 0x01 &&
	    buf[2] <= 0x04;
}

/* 0, or -1 when the bytes are malformed. */
int ipc_parse_frame(struct ipc_frame *f, const uint8_t *buf, size_t len)
    MUST_CHECK;
int ipc_parse_invoke(struct ipc_invoke *m, struct ipc_slice body) MUST_CHECK;
int ipc_parse_invoke_reply(struct ipc_invoke_reply *m, struct ipc_slice body)
    MUST_CHECK;
int ipc_parse_identity(struct ipc_identity *m, struct ipc_slice body)
    MUST_CHECK;
/* BindService.service_name and RequestError.error: their only field. */
int ipc_parse_text(struct ipc_slice *text, struct ipc_slice body) MUST_CHECK;
/* method is called for each method that the reply lists. */
int ipc_parse_bind_reply(struct ipc_bind_reply *m, struct ipc_slice body,
    void (*method)(void *arg, const struct ipc_method_info *info), void *arg)
    MUST_CHECK;

/* Room for what ipc_put_reply_head() and ipc_put_invoke_head() write. */
#define IPC_HEAD_MAX 64u

/*
 * The frame header and everything before the payload of an InvokeMethodReply
 * of len bytes.  Returns the bytes written.  success false: no payload.
 */
size_t ipc_put_reply_head(uint8_t out[IPC_HEAD_MAX], uint64_t request_id,
    bool success, bool has_more, size_t len);
/* As above for an InvokeMethod whose arguments come last. */
size_t ipc_put_invoke_head(uint8_t out[IPC_HEAD_MAX], uint64_t request_id,
    uint32_t service_id, uint32_t method_id, bool drop_reply, size_t len);

/*
 * A whole frame, header included: w is emptied first; ipc_frame_begin()
 * returns the mark for ipc_frame_end(), between them goes the message.
 */
size_t ipc_frame_begin(struct pb_writer *w, uint64_t request_id,
    enum ipc_kind kind);
void ipc_frame_end(struct pb_writer *w, size_t mark);

#endif /* TRANSPORT_WIRE_IPC_FRAME_H */
