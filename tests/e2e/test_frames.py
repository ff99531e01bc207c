#!/usr/bin/env python3
"""Bad input, the outermost layer: bytes, frames and calls."""

import os
import socket
import struct
import sys

from harness import tap
from harness.case import Case, TEST_SOURCE, config, pb
from harness.chance import seeded
from harness.ipc import FRAME_MAX, Gone, Port, Rejected, connect, pack

PORTS = {"producers": "ProducerPort", "consumers": "ConsumerPort"}


def bind_frame(name, request_id=1):
    frame = pb.IPCFrame(request_id=request_id)
    frame.msg_bind_service.service_name = name
    return pack(frame.SerializeToString())


def invoke_frame(method_id, args=b"", service_id=1, request_id=2):
    frame = pb.IPCFrame(request_id=request_id)
    frame.msg_invoke_method.service_id = service_id
    frame.msg_invoke_method.method_id = method_id
    frame.msg_invoke_method.args_proto = args
    return pack(frame.SerializeToString())


class Frames(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def bound(self, port):
        connection = self.raw(port=port)
        connection.send_raw(bind_frame(PORTS[port]))
        reply = connection.wait_frame("BindServiceReply")
        self.assertTrue(reply.msg_bind_service_reply.success)
        return connection

    def assert_serves(self, connection, port):
        """The connection still answers a call."""
        connection.send_raw(bind_frame("NoSuchPort", request_id=77))
        while True:
            frame = connection.wait_frame("an answer")
            if frame.request_id == 77:
                return

    def test_a_frame_of_length_zero_is_answered_and_the_connection_lives(self):
        with self.neighbour():
            for port in PORTS:
                connection = self.bound(port)
                connection.send_raw(b"\0\0\0\0" * 3)
                frame = connection.wait_frame("RequestError")
                self.assertEqual(frame.WhichOneof("msg"), "msg_request_error")
                self.assert_serves(connection, port)

    def test_the_largest_frame_is_taken(self):
        with self.neighbour():
            for port in PORTS:
                connection = self.bound(port)
                frame = pb.IPCFrame(request_id=5)
                frame.msg_invoke_method.service_id = 1
                frame.msg_invoke_method.method_id = 9999
                room = FRAME_MAX - 4 - frame.ByteSize()
                frame.data_for_testing.append(b"x" * (room - 4))
                data = pack(frame.SerializeToString())
                self.assertEqual(len(data), FRAME_MAX)
                connection.send_raw(data)
                reply = connection.wait_frame("a rejection")
                self.assertEqual(reply.request_id, 5)
                self.assertFalse(reply.msg_invoke_method_reply.success)

    def assert_refuses_length(self, length):
        with self.neighbour():
            for port in PORTS:
                connection = self.bound(port)
                connection.send_raw(struct.pack("<I", length) + b"x" * 100)
                connection.wait_closed()

    def test_a_frame_one_byte_too_long_ends_its_connection_only(self):
        self.assert_refuses_length(FRAME_MAX - 4 + 1)

    def test_a_frame_of_128_kib_and_a_byte_ends_its_connection_only(self):
        self.assert_refuses_length(128 * 1024 + 1)

    def test_a_frame_of_four_gib_ends_its_connection_only(self):
        before = self.daemons[0].memory()
        self.assert_refuses_length(0xFFFFFFFF)
        self.assert_grown_less(before, 16 * 1024)

    def test_a_frame_cut_at_every_byte_harms_nobody(self):
        request = pb.InitializeConnectionRequest(producer_name="cut")
        stream = bind_frame("ProducerPort") + \
            invoke_frame(1, request.SerializeToString()) + \
            invoke_frame(5, request_id=3)
        address = self.daemons[0].address("producers")
        with self.neighbour():
            for cut in range(len(stream)):
                sock = connect(address)
                sock.sendall(stream[:cut])
                sock.close()
        # Not one of them is left behind.
        consumer = self.consumer()
        self.until(lambda: not consumer.query().producers,
                   "the cut connections are gone")

    def test_a_frame_that_comes_byte_by_byte_is_understood(self):
        with self.neighbour():
            connection = self.raw()
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
            for byte in bind_frame("ProducerPort"):
                connection.send_raw(bytes([byte]))
                self.loop.turn()
            reply = connection.wait_frame("BindServiceReply")
            self.assertTrue(reply.msg_bind_service_reply.success)

    def test_many_frames_in_one_write_are_answered_in_order(self):
        with self.neighbour():
            connection = self.raw()
            connection.send_raw(b"".join(
                bind_frame("NoSuchPort", n) for n in range(1, 2001)))
            for n in range(1, 2001):
                self.assertEqual(connection.wait_frame().request_id, n)

    def test_garbage_is_refused_and_harms_nobody(self):
        rng = seeded()
        valid = bind_frame("ProducerPort") + invoke_frame(1)
        with self.neighbour():
            for round_number in range(150):
                port = rng.choice(list(PORTS))
                sock = connect(self.daemons[0].address(port))
                kind = round_number % 3
                if kind == 0:      # noise
                    data = rng.randbytes(rng.randrange(1, 2000))
                elif kind == 1:    # noise in a frame of the right length
                    data = pack(rng.randbytes(rng.randrange(1, 2000)))
                else:              # a valid stream with bytes changed
                    data = bytearray(valid)
                    for _ in range(rng.randrange(1, 5)):
                        data[rng.randrange(4, len(data))] = rng.randrange(256)
                try:
                    sock.sendall(bytes(data))
                except OSError:
                    pass
                sock.close()

    def test_an_unknown_service_is_answered_without_success(self):
        with self.neighbour():
            for port in PORTS:
                for name in ("", "NoSuchPort", "producerport", "x" * 100_000):
                    connection = self.raw(port=port)
                    connection.send_raw(bind_frame(name, 9))
                    reply = connection.wait_frame("BindServiceReply")
                    self.assertEqual(reply.request_id, 9)
                    self.assertEqual(reply.WhichOneof("msg"),
                                     "msg_bind_service_reply")
                    self.assertFalse(reply.msg_bind_service_reply.success)

    def test_each_port_offers_only_its_own_service(self):
        """A producer must not read traces."""
        with self.neighbour():
            for port, other in (("producers", "ConsumerPort"),
                                ("consumers", "ProducerPort"),
                                ("producers", "RelayPort")):
                connection = self.raw(port=port)
                connection.send_raw(bind_frame(other))
                reply = connection.wait_frame("BindServiceReply")
                self.assertFalse(reply.msg_bind_service_reply.success)

    def test_the_older_names_of_the_services_bind_too(self):
        for port, name in (("producers", "producer_port"),
                           ("consumers", "consumer_port")):
            connection = self.raw(port=port)
            connection.send_raw(bind_frame(name))
            reply = connection.wait_frame("BindServiceReply")
            self.assertTrue(reply.msg_bind_service_reply.success)

    def test_an_unknown_method_or_service_id_is_rejected(self):
        with self.neighbour():
            for port in PORTS:
                connection = self.bound(port)
                for method, service in ((0, 1), (999, 1), (1, 0), (1, 99),
                                        (0xFFFFFFFF, 0xFFFFFFFF)):
                    connection.send_raw(
                        invoke_frame(method, service_id=service, request_id=8))
                    reply = connection.wait_frame("a rejection")
                    self.assertEqual(reply.request_id, 8)
                    self.assertFalse(reply.msg_invoke_method_reply.success)

    def test_a_call_before_bind_is_rejected(self):
        with self.neighbour():
            for port in PORTS:
                connection = self.raw(port=port)
                connection.send_raw(invoke_frame(1))
                reply = connection.wait_frame("a rejection")
                self.assertFalse(reply.msg_invoke_method_reply.success)

    def test_a_frame_without_a_known_message_gets_a_request_error(self):
        with self.neighbour():
            for port in PORTS:
                connection = self.bound(port)
                for payload in (b"\x10\x2a",               # request_id only
                                b"\x10\x2a\xfa\x07\x00"):  # unknown field 127
                    connection.send_raw(pack(payload))
                    frame = connection.wait_frame("RequestError")
                    self.assertEqual(frame.request_id, 42)
                    self.assertEqual(frame.WhichOneof("msg"),
                                     "msg_request_error")
                    self.assertTrue(frame.msg_request_error.error)

    def test_messages_that_only_a_service_sends_get_a_request_error(self):
        with self.neighbour():
            for port in PORTS:
                connection = self.bound(port)
                for field in ("msg_bind_service_reply",
                              "msg_invoke_method_reply", "msg_request_error"):
                    frame = pb.IPCFrame(request_id=6)
                    getattr(frame, field).SetInParent()
                    connection.send_frame(frame)
                    answer = connection.wait_frame("RequestError")
                    self.assertEqual(answer.WhichOneof("msg"),
                                     "msg_request_error")

    def test_unknown_fields_are_ignored_in_frames_and_arguments(self):
        unknown = b"\xfa\x3f\x04abcd" + b"\xf8\x3f\x05"  # fields 1023
        with self.neighbour():
            connection = self.raw()
            frame = bind_frame("ProducerPort")[4:] + unknown
            connection.send_raw(pack(frame))
            reply = connection.wait_frame("BindServiceReply")
            self.assertTrue(reply.msg_bind_service_reply.success)
            args = pb.InitializeConnectionRequest(
                producer_name="n").SerializeToString() + unknown
            connection.send_raw(pack(invoke_frame(1, args)[4:] + unknown))
            reply = connection.wait_frame("InitializeConnectionResponse")
            self.assertTrue(reply.msg_invoke_method_reply.success)

    def test_arguments_that_do_not_parse_are_rejected(self):
        bad = (b"\xff", b"\x0a\x7f", b"\x0a\xff\xff\xff\xff\x0f",
               b"\x07", b"\x00\x01", b"\x0b\x0c", b"\x80" * 20)
        with self.neighbour():
            for port, service in PORTS.items():
                client = self._add(Port(self.loop, self.daemons[0].address(
                    port), bind=False))
                client.bind(service)
                if port == "producers":
                    client.invoke("InitializeConnection",
                                  pb.InitializeConnectionRequest(
                                      producer_name="bad args"))
                for method in sorted(client.methods):
                    for args in bad:
                        self.assertTrue(client.refuses(method, args),
                                        f"{method} took {args!r}")
                self.assertFalse(client.closed)

    def test_drop_reply_gets_no_reply_even_when_rejected(self):
        connection = self.bound("producers")
        frame = pb.IPCFrame(request_id=3)
        frame.msg_invoke_method.service_id = 1
        frame.msg_invoke_method.method_id = 999
        frame.msg_invoke_method.drop_reply = True
        connection.send_frame(frame)
        connection.send_raw(bind_frame("NoSuchPort", 4))
        self.assertEqual(connection.wait_frame().request_id, 4)

    def test_binding_a_second_time_is_refused_or_harmless(self):
        with self.neighbour():
            producer = self.producer("twice")
            try:
                producer.bind()
            except (Rejected, Gone):
                pass
            producer.sync()

    def test_descriptors_that_nobody_asked_for_are_closed(self):
        before = self.daemons[0].fds()
        with self.neighbour():
            connection = self.raw()
            for n in range(40):
                read_end, write_end = os.pipe()
                connection.send_raw(bind_frame("NoSuchPort", n + 1),
                                    [read_end, write_end])
                os.close(write_end)
                connection.wait_frame()
                os.close(read_end)
            connection.close()
        self.until(lambda: self.daemons[0].fds() <= before,
                   "the daemon lets go of the descriptors")


class CallsOutOfOrder(Case):
    def setUp(self):
        super().setUp()
        self.daemon()

    def test_every_producer_call_before_initialize_is_rejected(self):
        with self.neighbour():
            producer = self.producer("early", start=False)
            producer.bind()
            for method in sorted(set(producer.methods) -
                                 {"InitializeConnection"}):
                self.assertTrue(producer.refuses(method), method)
            producer.initialize()
            producer.sync()

    def test_initializing_twice_is_rejected(self):
        with self.neighbour():
            producer = self.producer("again")
            self.assertTrue(producer.refuses(
                "InitializeConnection",
                pb.InitializeConnectionRequest(producer_name="other")))
            names = [p.name for p in self.consumer().query().producers]
            self.assertIn("again", names)
            self.assertNotIn("other", names)

    def test_asking_for_commands_twice_keeps_the_producer_working(self):
        with self.neighbour():
            producer = self.producer("again")
            first = producer.async_call
            producer.listen()
            consumer = self.session(TEST_SOURCE)
            self.until(lambda: len(first.replies) +
                       len(producer.async_call.replies) >= 3 or
                       producer.closed, "commands arrive once")
            consumer.disable()
            consumer.ended()
            self.assertEqual(len(producer.saw("setup_tracing")), 1)

    def test_calls_on_instances_writers_and_sources_that_are_not_there(self):
        with self.neighbour():
            producer = self.producer("confused")
            for n in (0, 1, 77, 2**64 - 1):
                producer.call("NotifyDataSourceStarted",
                              pb.NotifyDataSourceStartedRequest(
                                  data_source_id=n))
                producer.call("NotifyDataSourceStopped",
                              pb.NotifyDataSourceStoppedRequest(
                                  data_source_id=n))
                producer.call("UnregisterTraceWriter",
                              pb.UnregisterTraceWriterRequest(
                                  trace_writer_id=n & 0xFFFFFFFF))
                producer.call("UnregisterDataSource",
                              pb.UnregisterDataSourceRequest(
                                  data_source_name=f"none.{n}"))
                producer.commit(ask=False, flush_request_id=n)
            producer.sync()

    def test_acknowledging_another_producers_instance_does_nothing(self):
        victim = self.producer("victim", ["v"])
        victim.acks_start = False
        consumer = self.consumer()
        events = consumer.observe("TYPE_DATA_SOURCES_INSTANCES")
        consumer.enable(config("v"))
        instance = victim.wait_started()[0]
        liar = self.producer("liar")
        liar.notify_started(instance)
        liar.sync()
        self.loop.settle()
        started = pb.ObservableEvents.DATA_SOURCE_INSTANCE_STATE_STARTED
        self.assertNotIn(started, [c.state for e in events
                                   for c in e.instance_state_changes])
        victim.notify_started(instance)
        self.until(lambda: started in [c.state for e in events for c in
                                       e.instance_state_changes],
                   "the real acknowledgement counts")
        consumer.stop()

    def test_consumer_calls_without_a_session_are_rejected(self):
        with self.neighbour():
            consumer = self.consumer()
            for method in ("DisableTracing", "ReadBuffers", "Flush",
                           "StartTracing", "ChangeTraceConfig", "Detach",
                           "GetTraceStats"):
                call = consumer.call(method)
                self.until(call.ended, method)
                self.assertFalse(consumer.closed, method)
            self.assertTrue(consumer.refuses("Attach",
                                             pb.AttachRequest(key="none")))
            consumer.query()

    def test_enabling_twice_is_refused_and_the_session_goes_on(self):
        producer = self.producer("p")
        consumer = self.session(TEST_SOURCE)
        first = consumer.session
        writer = producer.writer()
        writer.number(10)
        second = consumer.enable(config(TEST_SOURCE))
        self.until(second.ended, "the second EnableTracing ends")
        self.assertFalse(first.ended())
        writer.number(10)
        consumer.session = first
        consumer.stop()
        self.assert_numbers(consumer.read(), [20])

    def test_identity_after_other_calls_or_twice_changes_nothing(self):
        daemon = self.daemon(producer=["127.0.0.1:0"],
                             consumer=[self.path("c2")])
        producer = self.producer(
            "relayed", address=daemon.address("producers", "tcp"),
            identity={"pid": 7, "uid": 1234, "machine_id_hint": "first"})
        before = self.consumer(daemon.address("consumers")).query()
        producer.introduce(pid=8, uid=4321, machine_id_hint="second")
        try:
            producer.sync()
        except Gone:
            return
        after = self.consumer(daemon.address("consumers")).query()
        self.assertEqual([(p.uid, p.pid, p.machine_id)
                          for p in before.producers],
                         [(p.uid, p.pid, p.machine_id)
                          for p in after.producers])

    def test_identity_on_a_unix_socket_is_ignored(self):
        producer = self.producer("local", identity={
            "pid": 1, "uid": 1234, "machine_id_hint": "elsewhere",
            "machine_name": "elsewhere"})
        found = [p for p in self.consumer().query().producers
                 if p.name == producer.name]
        self.assertEqual([(p.uid, p.pid) for p in found],
                         [(os.getuid(), os.getpid())])
        self.assertIn(found[0].machine_name, ("", os.uname().sysname))
        self.assertEqual(found[0].machine_id, 0)


if __name__ == "__main__":
    sys.exit(tap.main())
