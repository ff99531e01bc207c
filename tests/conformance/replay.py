"""Plays the client's side of a recording at the daemon, frame by frame.

Each recording is a script in the order of its lines: a frame of the client is
sent when everything recorded before it has happened, a frame of the service is
waited for and compared.  Scripts that belong together run side by side.
"""

import os

from harness import abi, pb
from harness.consumer import join_slices
from harness.ipc import Connection
from harness.trace import Trace
from equivalence import differences, trace_differences

# Methods whose reply comes when something else has happened.
DEFERRED = {"EnableTracing", "GetAsyncCommand", "ObserveEvents"}


class Client:
    """One recorded connection, replayed."""

    def __init__(self, script, event):
        self.script = script
        self.connection = Connection(script.case.loop, script.address)
        script.case.connections.append(self.connection)
        self.waiting = {}      # request id -> our frames, not yet compared
        self.connection.on_frame = self._arrived
        self.ids_of_methods = {}   # recorded method id -> name
        self.methods = {}          # name -> our method id
        self.service_id = None
        self.reply_order = []      # request ids as they were answered
        self.slices = {}           # request id -> raw ReadBuffersResponses
        self.shm = None
        self.free_chunk_ids = {}   # writer -> next chunk id
        self.writers = {}          # registered writer -> our buffer

    def _arrived(self, frame):
        self.waiting.setdefault(frame.request_id, []).append(frame)

    def send(self, event):
        frame = event.frame
        kind = frame.WhichOneof("msg")
        fds = []
        if kind == "msg_invoke_method":
            invoke = frame.msg_invoke_method
            invoke.service_id = self.service_id
            invoke.method_id = self.methods[event.method]
            request = event.message()
            self.script.ids.translate(request)
            self.script.prepare(self, event, request)
            invoke.args_proto = request.SerializeToString()
            invoke.drop_reply = event.drop_reply  # may have been cut off
        for number, what in enumerate(event.fd_kinds):
            assert what == "file", f"cannot make a {what}"
            path = self.script.case.path(
                event.fd_info[number].get("path", "file"))
            self.script.files.append(path)
            fds.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        self.connection.send_frame(frame, fds)
        for fd in fds:
            os.close(fd)

    def has_reply(self, event):
        return bool(self.waiting.get(event.frame.request_id))

    def compare(self, event):
        """Takes our reply for a recorded one; sentences about differences."""
        recorded = event.frame
        ours = self.waiting[recorded.request_id].pop(0)
        kind = recorded.WhichOneof("msg")
        if ours.WhichOneof("msg") != kind:
            return [f"{kind} recorded, {ours.WhichOneof('msg')} here"]
        if kind == "msg_bind_service_reply":
            return self._bound(recorded.msg_bind_service_reply,
                               ours.msg_bind_service_reply)
        left = recorded.msg_invoke_method_reply
        right = ours.msg_invoke_method_reply
        out = []
        for field in ("success", "has_more"):
            if getattr(left, field) != getattr(right, field) and \
                    event.method != "ReadBuffers":
                out.append(f"{field}: {getattr(left, field)} recorded")
        if event.method not in DEFERRED:
            self.reply_order.append(recorded.request_id)
        if event.method == "ReadBuffers":
            return out + self._slices(event, recorded, ours)
        reply = getattr(pb, event.method + "Response")
        out += differences(reply.FromString(left.reply_proto),
                           reply.FromString(right.reply_proto),
                           self.script.ids)
        if event.method == "GetAsyncCommand" and \
                event.message().WhichOneof("cmd") == "setup_tracing":
            out += self._memory(event)
        return out

    def _bound(self, recorded, ours):
        self.service_id = ours.service_id
        self.methods = {m.name: m.id for m in ours.methods}
        self.ids_of_methods = {m.id: m.name for m in recorded.methods}
        out = []
        if recorded.success != ours.success:
            out.append(f"success: {recorded.success} recorded")
        missing = {m.name for m in recorded.methods} - set(self.methods)
        if missing:
            out.append(f"methods not offered: {sorted(missing)}")
        return out

    def _memory(self, event):
        """The descriptors that came along: kind, size and seals."""
        out = []
        if len(event.fd_kinds) != len(self.connection.fds):
            return [f"{len(event.fd_kinds)} descriptors recorded, "
                    f"{len(self.connection.fds)} here"]
        for info in event.fd_info:
            fd = self.connection.take_fd()
            size = os.fstat(fd).st_size
            if size != info["size"]:
                out.append(f"{info['size']} bytes of memory recorded, {size}")
            page = event.message().setup_tracing.shared_buffer_page_size_kb
            self.shm = abi.SharedMemory(fd, page * 1024)
            os.close(fd)
        return out

    def _slices(self, event, recorded, ours):
        """Collected until the last one: replies may be cut differently."""
        mine = self.slices.setdefault(recorded.request_id, ([], []))
        mine[0].append(recorded.msg_invoke_method_reply.reply_proto)
        mine[1].append(ours.msg_invoke_method_reply.reply_proto)
        if recorded.msg_invoke_method_reply.has_more:
            return []
        more = ours.msg_invoke_method_reply.has_more
        while more:
            self.script.case.until(
                lambda: self.waiting.get(recorded.request_id),
                "the rest of ReadBuffers")
            reply = self.waiting[recorded.request_id].pop(0) \
                .msg_invoke_method_reply
            mine[1].append(reply.reply_proto)
            more = reply.has_more
        theirs, our_trace = (Trace(join_slices(r)) for r in mine)
        self.script.traces.append((theirs, our_trace))
        return trace_differences(theirs, our_trace)

    def leftovers(self):
        return [f"request {request}: {len(frames)} frames too many"
                for request, frames in self.waiting.items() if frames]

    def close(self):
        self.connection.close()
        if self.shm is not None:
            self.shm.close()
            self.shm = None


class Script:
    """A recording on its way through the daemon."""

    def __init__(self, case, name, events, address, ids, ready=None):
        self.case = case
        self.name = name
        self.events = events
        self.address = address
        self.ids = ids
        self.ready = ready or (lambda: True)
        self.clients = {}
        self.at = 0
        self.problems = []
        self.traces = []   # (recorded, ours) for each ReadBuffers
        self.files = []
        self.recorded_order = {}
        self.prepare = lambda client, event, request: None

    def done(self):
        return self.at >= len(self.events)

    def next(self):
        return None if self.done() else self.events[self.at]

    def waits_for(self, method):
        """Whether it is stuck at a reply of this method."""
        event = self.next()
        return (event is not None and event.kind == "s2c" and
                event.method == method)

    def advance(self):
        """Plays what can be played now."""
        while not self.done() and (self.at > 0 or self.ready()):
            event = self.events[self.at]
            client = self.clients.get(event.conn)
            if event.kind == "open":
                self.clients[event.conn] = Client(self, event)
            elif event.kind == "c2s":
                client.send(event)
            elif event.kind == "s2c":
                if not client.has_reply(event):
                    if client.connection.closed:
                        self._problem(event, ["the daemon hung up"])
                        self.at = len(self.events)
                    return
                self._problem(event, client.compare(event))
                if event.method and event.method not in DEFERRED:
                    self.recorded_order.setdefault(event.conn, []).append(
                        event.frame.request_id)
            elif event.kind in ("eof", "close"):
                if not client.connection.closed:
                    self._problem(event, client.leftovers())
                    client.close()
            self.at += 1

    def _problem(self, event, sentences):
        for sentence in sentences:
            self.problems.append(
                f"{self.name} connection {event.conn}, {event.method} "
                f"({event.kind} at {event.t_us} us): {sentence}")
