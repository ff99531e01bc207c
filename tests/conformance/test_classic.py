#!/usr/bin/env python3
"""What our relay says in Perfetto's way is what Perfetto's own relay said.

The recording relay-tcp is played at a tributary-relay from both ends: a service
that answers as the recorded one did, and a producer that says what the recorded
one said.
"""

import os
import socket
import sys

from harness import abi, pb, tap
from harness.case import Case
from harness.ipc import Connection
from harness.producer import Producer, numbered
import recording

RELAY_PORT, PRODUCER_PORT = 0, 1  # connections of the recording


class Served(Connection):
    """A connection to the stand-in for Perfetto's service."""

    def __init__(self, loop, sock, service):
        self.service = service
        self.identity = None
        self.bound = None
        self.names = {}   # method id -> name
        self.calls = []   # (method, arguments, drop_reply) in their order
        self.kinds = []   # of frames, in their order
        self.async_id = None
        super().__init__(loop, sock)

    def on_frame(self, frame):
        kind = frame.WhichOneof("msg")
        self.kinds.append(kind)
        if kind == "set_peer_identity":
            self.identity = frame.set_peer_identity
        elif kind == "msg_bind_service":
            self._bind(frame)
        elif kind == "msg_invoke_method":
            self._invoke(frame.request_id, frame.msg_invoke_method)

    def _bind(self, frame):
        self.bound = frame.msg_bind_service.service_name
        reply = pb.IPCFrame(request_id=frame.request_id)
        offered = self.service.offers.get(self.bound)
        if offered is None:  # as it answers what it does not know
            reply.msg_bind_service_reply.SetInParent()
        else:
            reply.msg_bind_service_reply.CopyFrom(offered)
            self.names = {m.id: m.name for m in offered.methods}
        self.send_frame(reply)

    def _invoke(self, request_id, invoke):
        method = self.names[invoke.method_id]
        request = getattr(pb, method + "Request")
        self.calls.append((method, request.FromString(invoke.args_proto),
                           invoke.drop_reply))
        if method == "GetAsyncCommand":
            self.async_id = request_id
        elif not invoke.drop_reply:
            self.reply(request_id,
                       self.service.replies.get(method, b""), False)

    def reply(self, request_id, message, more):
        frame = pb.IPCFrame(request_id=request_id)
        reply = frame.msg_invoke_method_reply
        reply.success, reply.has_more = True, more
        reply.reply_proto = message
        self.send_frame(frame)

    def command(self, message):
        self.reply(self.async_id, message.SerializeToString(), True)

    def of(self, method):
        return [call for call in self.calls if call[0] == method]


class Service:
    """Answers BindService and calls as the recorded service did."""

    def __init__(self, loop, events):
        self.loop = loop
        self.offers, self.replies, self.connections = {}, {}, []
        names = {}
        for event in events:
            if event.frame is None:
                continue
            kind = event.frame.WhichOneof("msg")
            if kind == "msg_bind_service":
                names[event.conn] = event.frame.msg_bind_service.service_name
            elif kind == "msg_bind_service_reply":
                self.offers[names[event.conn]] = \
                    event.frame.msg_bind_service_reply
            elif kind == "msg_invoke_method_reply" and \
                    event.method != "GetAsyncCommand":
                self.replies[event.method] = \
                    event.frame.msg_invoke_method_reply.reply_proto
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        loop.watch(self.listener, self._accept)

    def _accept(self, can_read, can_write):
        sock, _ = self.listener.accept()
        self.connections.append(Served(self.loop, sock, self))

    def bound(self, name):
        return [c for c in self.connections if c.bound == name]

    def close(self):
        self.loop.unwatch(self.listener)
        self.listener.close()
        for connection in self.connections:
            connection.close()


class Classic(Case):
    def setUp(self):
        super().setUp()
        events = recording.load("relay-tcp")
        self.service = Service(self.loop, events)
        self.addCleanup(self.service.close)
        self.sent = {conn: [e for e in events if e.conn == conn and
                            e.kind == "c2s"] for conn in (0, 1)}
        self.came = [e for e in events if e.conn == PRODUCER_PORT and
                     e.kind == "s2c" and e.method == "GetAsyncCommand"]
        self.said = self.sent[RELAY_PORT][0].frame.set_peer_identity
        with open(self.path("conf"), "w") as file:
            file.write(f'machine_id: "{self.said.machine_id_hint}" '
                       f'machine_name: "{self.said.machine_name}"')
        self.device = self.relay(self.service.address,
                                 flags=["--config", self.path("conf")])

    def connection(self, name):
        self.until(lambda: self.service.bound(name), f"{name} is bound")
        found, = self.service.bound(name)
        return found

    def recorded(self, conn, method):
        return [e.message() for e in self.sent[conn] if e.method == method]

    def assert_begins_alike(self, connection, conn):
        """The same first frames, and the same words about the machine."""
        kinds = [e.frame.WhichOneof("msg") for e in self.sent[conn][:3]]
        self.assertEqual(connection.kinds[:3], kinds)
        self.assertEqual(connection.bound,
                         self.sent[conn][1].frame.msg_bind_service.service_name)
        for field in ("machine_id_hint", "machine_name"):
            self.assertEqual(getattr(connection.identity, field),
                             getattr(self.said, field))

    def test_the_relays_own_connection(self):
        port = self.connection("RelayPort")
        self.until(lambda: len(port.of("SyncClock")) >= 2,
                   "a PING and its UPDATE")
        self.assert_begins_alike(port, RELAY_PORT)
        methods = [e.method for e in self.sent[RELAY_PORT] if e.method]
        self.assertEqual([c[0] for c in port.calls[:3]], methods[:3])
        self.assertEqual([c[2] for c in port.calls[:3]],
                         [False, False, False])
        theirs, = self.recorded(RELAY_PORT, "InitRelay")
        ours = port.calls[0][1]
        for field, _ in theirs.system_info.ListFields():
            self.assertTrue(ours.system_info.HasField(field.name)
                            if field.has_presence else True, field.name)
        for field, _ in theirs.system_info.utsname.ListFields():
            self.assertTrue(ours.system_info.utsname.HasField(field.name))
        for mine, recorded in zip(port.of("SyncClock"),
                                  self.recorded(RELAY_PORT, "SyncClock")):
            self.assertEqual(mine[1].phase, recorded.phase)
            builtin = {c.clock_id for c in recorded.clocks if c.clock_id < 7}
            self.assertLessEqual(builtin, {c.clock_id for c in mine[1].clocks})

    def start_producer(self):
        """What the recorded one said until it was asked for data."""
        producer = Producer(self.loop, self.device.producer_path, start=False)
        self.connections.append(producer)
        producer.bind()
        request, = self.recorded(PRODUCER_PORT, "InitializeConnection")
        producer.settings = producer.invoke(
            "InitializeConnection", request, pb.InitializeConnectionResponse)
        producer.listen()
        for request in self.recorded(PRODUCER_PORT, "RegisterDataSource"):
            producer.invoke("RegisterDataSource", request)
        return producer

    def test_a_producers_connection(self):
        producer = self.start_producer()
        port = self.connection("ProducerPort")
        sources = self.recorded(PRODUCER_PORT, "RegisterDataSource")
        self.until(lambda: len(port.of("RegisterDataSource")) ==
                   len(sources), "all data sources are registered")
        self.assert_begins_alike(port, PRODUCER_PORT)
        self.assertEqual(port.identity.pid, os.getpid())
        self.assertEqual(port.identity.uid, os.getuid())
        theirs, = self.recorded(PRODUCER_PORT, "InitializeConnection")
        self.assertEqual(port.calls[0][0], "InitializeConnection")
        self.assertEqual(port.calls[1][0], "GetAsyncCommand")
        for field in ("producer_name", "sdk_version"):
            self.assertEqual(getattr(port.calls[0][1], field),
                             getattr(theirs, field))
        self.assertEqual([c[1] for c in port.of("RegisterDataSource")],
                         sources)
        self.assertEqual(port.calls[-1][0], "RegisterDataSource")
        begun = len(port.calls)

        # Commands as they came, and what the recorded producer did then.
        for event in self.came:
            command = event.message()
            port.command(command)
            self.follow(producer, command)
        producer.unregister_writer(1)
        self.until(lambda: port.of("UnregisterTraceWriter"),
                   "the last word arrives")
        self.assert_same_calls(port.calls[begun:])
        producer.close()
        self.until(lambda: port.closed, "its connection ends with it")

    def follow(self, producer, command):
        kind = command.WhichOneof("cmd")
        producer.wait_command(kind)
        if kind == "setup_data_source":
            instance, = producer.instances.values()
            self.assertEqual(instance.config.name,
                             command.setup_data_source.config.name)
            self.writer = producer.writer(instance, writer_id=1)
        elif kind == "flush":
            self.flushed = command.flush

    def before_flush(self, producer):
        producer.before_flush = lambda _: self.writer.write(
            [numbered(0)], ask=False)

    def assert_same_calls(self, calls):
        """Methods, order and words; data as chunks, the empty commit is for
        the service's reply alone."""
        recorded = []
        for event in self.sent[PRODUCER_PORT]:
            if event.method in (None, "InitializeConnection",
                                "GetAsyncCommand", "RegisterDataSource"):
                continue
            message = event.message()
            if event.method == "CommitData" and message.chunks_to_move:
                continue  # what was written is ours to choose
            if event.method == "CommitData" and not message.ListFields():
                continue
            recorded.append((event.method, message))
        ours = [(method, message) for method, message, _ in calls
                if not (method == "CommitData" and message.chunks_to_move)]
        self.assertEqual([m for m, _ in ours], [m for m, _ in recorded])
        for (method, mine), (_, theirs) in zip(ours, recorded):
            self.assertEqual(mine, theirs, method)
        for method, _, dropped in calls:
            self.assertTrue(dropped, f"{method} wants no reply")

    def test_a_chunk_goes_out_as_it_was_written(self):
        producer = self.start_producer()
        self.before_flush(producer)
        port = self.connection("ProducerPort")
        self.until(lambda: port.async_id is not None, "it takes commands")
        for event in self.came:
            command = event.message()
            if command.WhichOneof("cmd") == "stop_data_source":
                break
            port.command(command)
            self.follow(producer, command)
        self.until(lambda: len(port.of("CommitData")) >= 2,
                   "the chunk and the flush arrive")
        theirs = [m for m in self.recorded(PRODUCER_PORT, "CommitData")
                  if m.chunks_to_move][0].chunks_to_move[0]
        (_, first, _), (_, second, _) = port.of("CommitData")
        move, = first.chunks_to_move
        self.assertEqual(move.target_buffer, theirs.target_buffer)
        self.assertEqual((move.page, move.chunk), (theirs.page, theirs.chunk))
        self.assertEqual(second.flush_request_id, self.flushed.request_id)
        self.assertEqual(len(second.chunks_to_move), 0)
        packet = numbered(0)
        self.assertIn(packet[-60:], move.data)
        self.assertEqual(move.data[:abi.CHUNK_HEADER],
                         abi.chunk(1, 0, [packet], 0)[:abi.CHUNK_HEADER])


if __name__ == "__main__":
    sys.exit(tap.main())
