"""Frames and calls: the client side of IPCFrame over any stream socket."""

import array
import os
import socket
import struct

from . import pb, tls

FRAME_MAX = 128 * 1024  # length prefix included


class Rejected(AssertionError):
    """InvokeMethodReply{success: false}."""


class Gone(AssertionError):
    """The service closed the connection."""


def listeners(path):
    """How many listen at a UNIX socket; its file is there a moment before."""
    with open("/proc/net/unix", encoding="utf-8") as table:
        return sum(line.split()[3] == "00010000" for line in table
                   if line.endswith(f" {path}\n"))


def connect(address):
    """A connected socket; address as tributaryd's log writes it.

    A tls.Address, and only such a one, is shaken hands with; a socket, or what
    acts as one, is connected already.
    """
    if not isinstance(address, str):
        return address
    folder = getattr(address, "folder", None)
    address = address.removeprefix("tls://")
    address = address.removeprefix("unix:").removeprefix("tcp:")
    if address.startswith("vsock:"):
        cid, port = address.removeprefix("vsock:").lstrip("/").split(":")
        sock = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
        where = (int(cid), int(port))
    elif address.startswith(("/", "@")):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        where = "\0" + address[1:] if address[0] == "@" else address
    else:
        host, port = address.rsplit(":", 1)
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        where = (host, int(port))
    try:
        sock.connect(where)
        return tls.Socket(sock, folder) if folder else sock
    except OSError:
        sock.close()
        raise


def pack(payload):
    return struct.pack("<I", len(payload)) + payload


class Connection:
    """Whole frames in and out; what they mean is the subclass's."""

    def __init__(self, loop, address, rcvbuf=None):
        self.loop = loop
        self.sock = connect(address)
        if rcvbuf is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.setblocking(False)
        self.passes_fds = self.sock.family == socket.AF_UNIX
        self.closed = False  # by the service, or by us
        self.reading = True
        self.frames = []     # what no subclass took
        self.largest = 0     # biggest frame received, prefix included
        self.fds = []        # received, oldest first; close() closes them
        self._in = bytearray()
        self._out = []       # [bytes, fds] still to be sent
        self._watch()

    def _watch(self):
        if self.closed or not (self.reading or self._out):
            self.loop.unwatch(self.sock)
        else:
            self.loop.watch(self.sock, self._ready, bool(self._out))

    def pause(self):
        """Stop reading, as a stuck client would."""
        self.reading = False
        self._watch()

    def resume(self):
        self.reading = True
        self._watch()

    def _ready(self, can_read, can_write):
        if can_write:
            self._flush()
        if can_read and self.reading and not self.closed:
            self._receive()

    def _receive(self):
        try:
            data, ancillary, _, _ = self.sock.recvmsg(
                1 << 18, socket.CMSG_SPACE(16 * 4))
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        for level, kind, raw in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                got = array.array("i")
                got.frombytes(raw[:len(raw) - len(raw) % got.itemsize])
                self.fds.extend(got)
        if not data:
            self._lost()
            return
        self._in += data
        while len(self._in) >= 4:
            length = 4 + struct.unpack_from("<I", self._in)[0]
            assert length <= FRAME_MAX, f"the service sent {length} bytes"
            if len(self._in) < length:
                break
            self.largest = max(self.largest, length)
            frame = pb.IPCFrame.FromString(bytes(self._in[4:length]))
            del self._in[:length]
            self.on_frame(frame)

    def _lost(self):
        if not self.closed:
            self.closed = True
            self.loop.unwatch(self.sock)
            self.sock.close()
            self._out.clear()
            self.on_closed()

    def _flush(self):
        while self._out and not self.closed:
            data, fds = self._out[0]
            try:
                if fds:
                    n = self.sock.sendmsg([data], [(
                        socket.SOL_SOCKET, socket.SCM_RIGHTS,
                        array.array("i", fds))])
                else:
                    n = self.sock.send(data)
            except BlockingIOError:
                break
            except OSError:
                # What the service said last may still be readable.
                self._out.clear()
                break
            if n == len(data):
                self._out.pop(0)
            else:
                self._out[0] = [data[n:], ()]
        if not self.closed:
            self._watch()

    def send_raw(self, data, fds=()):
        if not self.closed:
            self._out.append([bytes(data), tuple(fds)])
            self._flush()

    def send_frame(self, frame, fds=()):
        self.send_raw(pack(frame.SerializeToString()), fds)

    def sent(self):
        return not self._out

    def take_fd(self):
        return self.fds.pop(0)

    def on_frame(self, frame):
        self.frames.append(frame)

    def on_closed(self):
        pass

    def close(self):
        if not self.closed:
            self.closed = True
            self.loop.unwatch(self.sock)
            self.sock.close()
        while self.fds:
            os.close(self.fds.pop())

    def wait_closed(self):
        self.loop.until(lambda: self.closed, "the service hangs up")

    def wait_frame(self, what="a frame"):
        self.loop.until(lambda: self.frames or self.closed, what)
        if not self.frames:
            raise Gone(f"closed instead of {what}")
        return self.frames.pop(0)


class Call:
    """A call in flight; replies are the encoded reply messages."""

    def __init__(self, method, on_reply=None):
        self.method = method
        self.replies = []
        self.done = False      # a reply without has_more came
        self.rejected = False
        self.gone = False      # the connection ended first
        self.on_reply = on_reply

    def ended(self):
        return self.done or self.gone


class Port(Connection):
    """A connection bound to one service of the daemon."""

    service = ""

    def __init__(self, loop, address, bind=True, **kwargs):
        super().__init__(loop, address, **kwargs)
        self.calls = {}
        self.service_id = None
        self.methods = {}
        self.errors = []  # RequestError texts
        self._next_id = 1
        self._bound = None
        if bind:
            self.bind()

    def new_id(self):
        self._next_id += 1
        return self._next_id - 1

    def start_bind(self, name):
        frame = pb.IPCFrame(request_id=self.new_id())
        frame.msg_bind_service.service_name = name
        self.send_frame(frame)

    def bind(self, name=None):
        """Returns the BindServiceReply; raises Rejected without success."""
        self._bound = None
        self.start_bind(name or self.service)
        self.loop.until(lambda: self._bound or self.closed, "bind")
        if self._bound is None:
            raise Gone("closed instead of bound")
        if not self._bound.success:
            raise Rejected(name or self.service)
        self.service_id = self._bound.service_id
        self.methods = {m.name: m.id for m in self._bound.methods}
        return self._bound

    def call(self, method, request=None, *, fds=(), drop_reply=False,
             on_reply=None):
        """Invokes; request is a message, bytes or None.  Does not wait."""
        call = Call(method, on_reply)
        frame = pb.IPCFrame(request_id=self.new_id())
        invoke = frame.msg_invoke_method
        invoke.service_id = self.service_id
        invoke.method_id = self.methods.get(method, 0) \
            if isinstance(method, str) else method
        if request is None:
            request = b""
        if not isinstance(request, bytes):
            request = request.SerializeToString()
        invoke.args_proto = request
        if drop_reply:
            invoke.drop_reply = True
            call.done = True
        elif self.closed:
            call.gone = True
        else:
            self.calls[frame.request_id] = call
        self.send_frame(frame, fds)
        return call

    def finish(self, call, reply_type=None):
        """Waits for the call's end; its last reply, or Rejected, or Gone."""
        self.loop.until(call.ended, f"reply to {call.method}")
        if call.gone:
            raise Gone(f"closed instead of a reply to {call.method}")
        if call.rejected:
            raise Rejected(call.method)
        if reply_type is None:
            return None
        return reply_type.FromString(call.replies[-1])

    def invoke(self, method, request=None, reply_type=None, **kwargs):
        return self.finish(self.call(method, request, **kwargs), reply_type)

    def refuses(self, method, request=None, **kwargs):
        """Whether the service answers the call with success: false."""
        call = self.call(method, request, **kwargs)
        self.loop.until(call.ended, f"reply to {method}")
        return call.rejected

    def on_frame(self, frame):
        kind = frame.WhichOneof("msg")
        if kind == "msg_bind_service_reply":
            self._bound = frame.msg_bind_service_reply
            return
        if kind == "msg_request_error":
            self.errors.append(frame.msg_request_error.error)
            return
        call = self.calls.get(frame.request_id)
        if kind != "msg_invoke_method_reply" or call is None:
            self.frames.append(frame)
            return
        reply = frame.msg_invoke_method_reply
        if not reply.has_more or not reply.success:
            del self.calls[frame.request_id]
            call.done = True
        call.rejected = not reply.success
        call.replies.append(reply.reply_proto)
        if call.on_reply is not None and reply.success:
            call.on_reply(reply.reply_proto)

    def on_closed(self):
        for call in self.calls.values():
            call.gone = True
        self.calls.clear()
