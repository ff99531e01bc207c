#!/usr/bin/env python3
"""Who may what: users, certificates and strangers, each with its own."""

import contextlib
import os
import sys
import time

from harness import tap, tls
from harness.case import Case, TEST_SOURCE, config, pb
from harness.ipc import Rejected
from harness.pki import OPENSSL, Pki

ANN, BOB = 31001, 31002  # uids that nobody on a test machine has
NOBODY = 65534


@contextlib.contextmanager
def acting_as(uid):
    """The kernel notes the effective user of whoever connects."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


class Trust(Case):
    def start(self, settings="", **options):
        with open(self.path("conf"), "w") as file:
            file.write(settings)
        daemon = self.daemon(
            flags=["--config", self.path("conf")], **options)
        os.chmod(self.folder, 0o755)
        for path in (daemon.producer_path, daemon.consumer_path):
            if os.path.exists(path):
                os.chmod(path, 0o666)
        return daemon

    def wait_log(self, *words):
        daemon = self.daemons[0]
        self.until(lambda: any(all(word in line for word in words)
                               for line in daemon.log().splitlines()),
                   f"{words} in the log")

    def assert_bind_refused(self, port, *words):
        with self.assertRaises(Rejected):
            port.bind()
        self.until(lambda: port.errors, "the reason")
        for word in words:
            self.assertIn(word, port.errors[-1])
        self.wait_log(*words)

    def assert_same_refusal(self, consumer, foreign, absent):
        """What is another's is answered like what does not exist."""
        refused = consumer.clone(**foreign)
        self.assertFalse(refused.success)
        self.assertEqual(refused.error, consumer.clone(**absent).error)

    def assert_secret(self, stranger, owner_session):
        """A session of somebody else, for whom it is as good as not there."""
        state = stranger.query()
        self.assertGreaterEqual(state.num_sessions, 1)
        self.assertEqual(
            [s.id for s in state.tracing_sessions if s.id == owner_session.id],
            [])
        self.assert_same_refusal(
            stranger, {"session_id": owner_session.id},
            {"session_id": owner_session.id + 1000})
        self.assert_same_refusal(
            stranger, {"unique_session_name": "secret"},
            {"unique_session_name": "no such"})

    def record_secret(self, consumer):
        """Starts a session that is called secret; its entry of the list."""
        consumer.enable(config(TEST_SOURCE, unique_session_name="secret"))
        sessions = consumer.query().tracing_sessions
        self.assertEqual([s.unique_session_name for s in sessions],
                         ["secret"])
        return sessions[0]


class Users(Trust):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can act as others")

    def consumer_of(self, uid, **options):
        with acting_as(uid):
            return self.consumer(**options)

    def test_a_session_is_its_users_secret(self):
        self.start()
        with self.neighbour():
            ann, bob = self.consumer_of(ANN), self.consumer_of(BOB)
            session = self.record_secret(ann)
            self.assertEqual(session.consumer_uid, ANN)
            self.assert_secret(bob, session)
            ann.detach("key")
            self.assertTrue(bob.refuses("Attach", pb.AttachRequest(key="key")),
                            "another user attached her session")
            self.assertTrue(bob.refuses("Attach",
                                        pb.AttachRequest(key="no such")))
            # Another connection of hers has her session.
            again = self.consumer_of(ANN)
            self.assertEqual([s.id for s in again.query().tracing_sessions],
                             [session.id])
            self.assertTrue(again.clone(session_id=session.id).success)
            again.free()
            again.attach("key")
            again.disable()

    def test_root_may_all(self):
        self.start()
        session = self.record_secret(ann := self.consumer_of(ANN))
        root = self.consumer()
        self.assertIn(session.id,
                      [s.id for s in root.query().tracing_sessions])
        self.assertTrue(root.clone(session_id=session.id).success)
        root.free()
        ann.detach("key")
        root.attach("key")
        root.disable()

    def test_a_session_for_bug_reports_is_everybodys_to_clone(self):
        self.start()
        ann, bob = self.consumer_of(ANN), self.consumer_of(BOB)
        ann.enable(config(TEST_SOURCE, bugreport_score=5))
        ann.query()  # answered behind it: another connection may be faster
        shown = bob.query().tracing_sessions
        self.assertEqual([s.bugreport_score for s in shown], [5])
        self.assertTrue(bob.clone(session_id=shown[0].id).success)

    def test_a_rule_makes_a_user_an_admin(self):
        self.start(f'trust {{ user: "{BOB}" may: ADMIN }}')
        session = self.record_secret(self.consumer_of(ANN))
        bob = self.consumer_of(BOB)
        self.assertEqual([s.id for s in bob.query().tracing_sessions],
                         [session.id])
        self.assertTrue(bob.clone(unique_session_name="secret").success)

    def test_a_rule_keeps_a_user_from_consuming(self):
        self.start(f'trust {{ user: "{BOB}" may: PRODUCER }}')
        with self.neighbour():
            self.assert_bind_refused(
                self.consumer_of(BOB, bind=False),
                f"uid {BOB} may be producer, not consumer",
                f'trust {{ user: "{BOB}" may: CONSUMER }}')
            with acting_as(BOB):
                self.producer("bobs").sync()
            self.consumer_of(ANN).query()

    def test_a_rule_for_a_group_finds_its_members(self):
        self.start('trust { group: "4242" may: ADMIN }\n'
                   'trust { user: "*" }')
        os.setegid(4242)
        try:
            self.consumer_of(ANN).query()
        finally:
            os.setegid(0)
        self.assert_bind_refused(self.consumer_of(ANN, bind=False),
                                 f"uid {ANN} may be nothing")

    def test_only_an_admin_ends_the_sessions_of_others(self):
        self.start()
        with self.neighbour():
            bob = self.consumer_of(BOB)
            self.assertIn("only an admin",
                          bob.refused(config("x", exclusive_prio=1)))
            bob.query()

    def test_one_users_sessions_leave_room_for_others(self):
        self.start("limits { max_sessions_per_uid: 2 "
                   "max_buffer_kb_per_consumer: 100 }")
        ann, bob = self.consumer_of(ANN), self.consumer_of(BOB)
        ann.enable(config("x", size_kb=60))
        ann.query()
        again = self.consumer_of(ANN)
        error = again.refused(config("x", size_kb=60))
        self.assertIn(f"uid {ANN} has 60 KiB", error)
        self.assertIn("limits.max_buffer_kb_per_consumer", error)
        again.enable(config("x", size_kb=20))
        again.query()
        error = self.consumer_of(ANN).refused(config("x", size_kb=4))
        self.assertIn(f"for uid {ANN}", error)
        self.assertIn("limits.max_sessions_per_uid", error)
        bob.enable(config("x", size_kb=60))
        self.assertFalse(bob.session.ended())

    def test_data_sources_of_one_user_leave_room_for_others(self):
        self.start("limits { max_data_sources_per_peer: 3 "
                   "max_data_sources: 5 }")

        def register(producer, name):
            answer = producer.invoke(
                "RegisterDataSource", pb.RegisterDataSourceRequest(
                    data_source_descriptor={"name": name}),
                pb.RegisterDataSourceResponse)
            return answer.error

        with acting_as(ANN):
            first = self.producer("first", ["a", "b"])
            second = self.producer("second", [])
        with acting_as(BOB):
            bobs = self.producer("bobs", ["a"])
        self.assertEqual(register(second, "c"), "")
        self.assertIn("limits.max_data_sources_per_peer",
                      register(second, "d"))
        self.wait_log("data source refused",
                      "limits.max_data_sources_per_peer")
        self.assertEqual(register(bobs, "b"), "")
        self.assertIn("limits.max_data_sources is", register(bobs, "c"))
        first.close()
        self.until(lambda: register(bobs, "c") == "", "room")


class Certificates(Trust):
    def setUp(self):
        super().setUp()
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        self.pki = Pki(self.path("pki"))

    def start(self, settings="", **options):
        return super().start(
            f'tls {{ dir: "{self.pki.collector()}" }}\n{settings}',
            producer=[self.path("p"), "tls://127.0.0.1:0", "127.0.0.1:0"],
            consumer=[self.path("c"), "tls://127.0.0.1:0"], **options)

    def tls(self, port, name, **options):
        folder = self.path(f"pki/of-{name}")
        if not os.path.exists(folder):
            self.pki.issue(name, **options)
        return tls.Address(self.daemons[0].address(port, "tls"), folder)

    def consumer_of(self, name, role="consumer", **options):
        return self.consumer(self.tls("consumers", name, role=role),
                             **options)

    def test_a_session_is_its_certificates_secret(self):
        self.start()
        with self.neighbour():
            ann, bob = self.consumer_of("ann"), self.consumer_of("bob")
            session = self.record_secret(ann)
            self.assertEqual(session.consumer_uid, NOBODY)
            self.assert_secret(bob, session)
            ann.detach("key")
            self.assertTrue(bob.refuses("Attach",
                                        pb.AttachRequest(key="key")))
            again = self.consumer_of("ann")
            self.assertTrue(again.clone(session_id=session.id).success)
            again.free()
            again.attach("key")
            again.disable()

    def test_an_admins_certificate_may_all(self):
        self.start()
        session = self.record_secret(self.consumer_of("ann"))
        boss = self.consumer_of("boss", "admin")
        self.assertEqual([s.id for s in boss.query().tracing_sessions],
                         [session.id])
        self.assertTrue(boss.clone(unique_session_name="secret").success)

    def test_a_device_never_reaches_the_consumer_port(self):
        self.start()
        with self.neighbour():
            for name, role in (("dev-1", "producer"), ("dev-2", "relay"),
                               ("dev-3", None)):
                self.assert_bind_refused(
                    self.consumer_of(name, role, bind=False),
                    f'the certificate "{name}" may be producer',
                    "not consumer", "--role consumer",
                    f'trust {{ name: "{name}" may: CONSUMER }}')

    def test_a_role_that_is_none_gives_nothing(self):
        self.start()
        with self.neighbour():
            for role in ("emperor", "consumerX", "producer?", "ADMIN"):
                name = f"dev-{role.strip('?')}"
                told = f'"{name}" (it has an unknown role) may be nothing'
                self.assert_bind_refused(
                    self.consumer_of(name, role, bind=False), told)
                self.assert_bind_refused(
                    self.producer(name, address=self.tls("producers", name),
                                  start=False), told)

    def test_a_consumer_writes_nothing(self):
        self.start()
        with self.neighbour():
            self.assert_bind_refused(
                self.producer("ann", address=self.tls(
                    "producers", "ann", role="consumer"), start=False),
                'the certificate "ann" may be consumer', "not producer")

    def test_rules_win_over_what_a_certificate_carries(self):
        self.start('trust { name: "stolen-*" }\n'
                   'trust { name: "boss" may: PRODUCER }\n'
                   'trust { name: "gw" may: RELAY may: CONSUMER }')
        self.assert_bind_refused(
            self.consumer_of("stolen-1", "admin", bind=False),
            '"stolen-1" may be nothing')
        self.assert_bind_refused(
            self.consumer_of("boss", "admin", bind=False),
            '"boss" may be producer, not consumer')
        self.consumer_of("gw", None).query()

    def test_roles_of_certificates_can_be_ignored(self):
        self.start("ignore_certificate_roles: true "
                   "certificate_default: PRODUCER")
        self.assert_bind_refused(
            self.consumer_of("boss", "admin", bind=False),
            '"boss" may be producer, not consumer')

    def record_machines(self, *producers):
        """{producer's name: (uid, machine's id, its name)} of what it wrote."""
        consumer = self.session(trace_all_machines=True)
        for n, producer in enumerate(producers):
            producer.writer().number(n + 1)
        consumer.flush(60_000)
        state = consumer.query()
        consumer.stop()
        trace = consumer.read()
        written = {}
        for packet in trace.of("for_testing"):
            key = packet.trusted_packet_sequence_id
            written.setdefault(key, []).append(packet)
        by_count = {len(packets): packets[0] for packets in written.values()}
        names = {p.name: p.machine_name for p in state.producers}
        return {p.name: (by_count[n + 1].trusted_uid,
                         by_count[n + 1].machine_id, names[p.name])
                for n, p in enumerate(producers)}

    def invented(self, name, count, **options):
        """Producers of one certificate, each with a machine of its own."""
        return [self.producer(
            f"{name}-{i}", address=self.tls("producers", name),
            identity={"machine_id_hint": f"{name} {i}"}, **options)
            for i in range(count)]

    def test_machines_that_a_certificate_invents_share_its_quota(self):
        self.start('trust { name: "gw" may: RELAY may_claim_machine: true }\n'
                   'quota { certificate: "*" each_machine { max_producers: 2 '
                   'kb_per_s: 64 burst_kb: 64 } over: DROP }')
        with self.neighbour():
            rogues = self.invented("rogue", 2)
            with self.assertRaises(Rejected):
                self.invented("rogue", 3)[2].sync()
            self.wait_log("quota.each_machine.max_producers")
            # Who may claim machines has a quota for each.
            for producer in self.invented("gw", 3):
                producer.sync()
            session = self.session(trace_all_machines=True, size_kb=4096)
            began = time.monotonic()
            for producer in rogues:
                producer.writer().number(200, size=4000)
            session.flush()
            session.stop()
            kept = sum(p.ByteSize()
                       for p in session.read().of("for_testing"))
            # One burst, its rate meanwhile, and a chunk of each.
            self.assertLess(kept, (64 + 64 * (time.monotonic() - began)
                                   + 2 * 32) * 1024)

    def test_machines_that_a_certificate_invents_share_one_part(self):
        self.start()
        victim = self.producer("victim", address=self.tls(
            "producers", "victim"))
        rogues = self.invented("rogue", 16)
        session = self.session(trace_all_machines=True, size_kb=1024)
        victim.writer(writer_id=777).number(50, size=4000)
        victim.sync()
        writers = [producer.writer() for producer in rogues]
        for _ in range(40):
            for writer in writers:
                writer.number(4, size=4000)
        session.flush()
        session.stop()
        packets = session.read().of("for_testing")
        self.assertGreater(len(packets), 60)
        self.assertEqual([p.for_testing.counter for p in packets
                          if p.for_testing.seq_value == 777],
                         list(range(50)))

    def test_a_device_has_the_machine_of_its_certificate(self):
        self.start('trust { name: "gw" may: RELAY may_claim_machine: true }')
        claim = {"pid": 7, "uid": 0, "machine_id_hint": "the same",
                 "machine_name": "host"}

        def device(name, **identity):
            return self.producer(name, address=self.tls("producers", name),
                                 identity=identity or None)

        seen = self.record_machines(
            device("dev-1", **claim), device("dev-2", **claim),
            device("dev-3"), device("gw", **claim | {
                "machine_name": "phone"}),
            self.producer("plain", address=self.daemons[0].address(
                "producers", "tcp"), identity=claim))
        self.assertEqual({name: what[2] for name, what in seen.items()},
                         {"dev-1": "dev-1", "dev-2": "dev-2",
                          "dev-3": "dev-3", "gw": "phone", "plain": "host"})
        machines = [what[1] for what in seen.values()]
        self.assertNotIn(0, machines)
        self.assertEqual(len(set(machines)), 5, machines)
        # Labels: what is claimed; root only where somebody is known.
        self.assertEqual({name: what[0] for name, what in seen.items()},
                         {"dev-1": 0, "dev-2": 0, "dev-3": NOBODY, "gw": 0,
                          "plain": NOBODY})


class Strangers(Trust):
    def test_whoever_is_there_on_tcp_is_nobody(self):
        self.start(producer=[self.path("p"), "127.0.0.1:0"],
                   consumer=[self.path("c"), "127.0.0.1:0"])
        plain = self.consumer(self.daemons[0].address("consumers", "tcp"))
        with self.neighbour():
            # The neighbour's session is a user's.
            state = plain.query()
            self.assertEqual(state.num_sessions, 1)
            self.assertEqual(list(state.tracing_sessions), [])
        session = self.record_secret(plain)
        self.assertEqual(session.consumer_uid, NOBODY)
        other = self.consumer(self.daemons[0].address("consumers", "tcp"))
        self.assertEqual([s.id for s in other.query().tracing_sessions],
                         [session.id])
        if os.geteuid() == 0:
            os.chmod(self.folder, 0o755)
            with acting_as(NOBODY):
                user = self.consumer(
                    self.daemons[0].address("consumers", "unix"))
            self.assert_secret(user, session)


if __name__ == "__main__":
    sys.exit(tap.main())
