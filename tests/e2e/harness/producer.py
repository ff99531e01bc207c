"""A producer: an honest one by default, with every step open to abuse."""

import os
import time

from . import abi, pb
from .ipc import Port

TEST_SOURCE = "test.numbers"


def numbered(counter, size=100, value=0, **fields):
    """A packet that carries its number, of about `size` bytes."""
    packet = pb.TracePacket(**fields)
    if "timestamp" not in fields:
        packet.timestamp = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    event = packet.for_testing
    event.counter = counter
    event.seq_value = value
    event.str = "x" * max(0, size - packet.ByteSize() - 6)
    return packet.SerializeToString()


class Instance:
    """A data source of this producer in one session."""

    def __init__(self, command):
        self.id = command.new_instance_id
        self.config = command.config
        self.state = "setup"

    @property
    def buffer(self):
        return self.config.target_buffer


class Writer:
    """One sequence: chunks numbered from 0, written to one buffer."""

    def __init__(self, producer, writer_id, buffer, register=True):
        self.producer = producer
        self.id = writer_id
        self.buffer = buffer
        self.next_chunk = 0
        self.counter = 0  # of numbered packets
        if register:
            producer.register_writer(writer_id, buffer)

    def chunk_id(self):
        self.next_chunk += 1
        return self.next_chunk - 1

    def write(self, packets, room=None, ask=True):
        """Commits packets, whole or in fragments; waits unless not ask."""
        producer = self.producer
        if room is None:
            room = producer.chunk_room()
        moves = []
        for fragments, flags in abi.split(packets, room):
            data = abi.chunk(self.id, self.chunk_id(), fragments, flags)
            move = producer.place(data)
            if move is None:
                # Shared memory is full: have what is in it taken first.
                producer.commit(moves)
                moves = []
                move = producer.place(data)
            move.target_buffer = self.buffer
            moves.append(move)
            if sum(m.ByteSize() for m in moves) > 64 * 1024:
                producer.commit(moves, ask=False)
                moves = []
        producer.commit(moves, ask=ask)

    def number(self, count, size=100, ask=True, **fields):
        """Writes the next `count` numbered packets."""
        first = self.counter
        self.counter += count
        self.write([numbered(n, size, value=self.id, **fields)
                    for n in range(first, self.counter)], ask=ask)


class Producer(Port):
    service = "ProducerPort"

    def __init__(self, loop, address, name="test.producer",
                 sources=(TEST_SOURCE,), *, identity=None, start=True,
                 **options):
        """options: see initialize(); sources: names or descriptors."""
        super().__init__(loop, address, bind=False)
        self.name = name
        self.sources = sources
        self.commands = []   # (name, message) in order of arrival
        self.instances = {}
        self.shm = None
        self.page_size = 4096
        self.acks_start = True
        self.acks_stop = True
        self.answers_flush = True
        self.clears = 0
        self.before_stop = None   # called with the instance
        self.before_flush = None  # called with the command
        self._next_writer = 1
        self._options = options
        if identity is not None:
            self.introduce(**identity)
        if start:
            self.start()

    def introduce(self, **identity):
        """SetPeerIdentity: what a relay says before anything else."""
        frame = pb.IPCFrame()
        for key, value in identity.items():
            setattr(frame.set_peer_identity, key, value)
        self.send_frame(frame)

    def start(self):
        self.bind()
        self.initialize(**self._options)
        self.listen()
        for source in self.sources:
            self.register(source)

    def initialize(self, *, fds=(), **fields):
        request = pb.InitializeConnectionRequest(
            producer_name=self.name, sdk_version="test", **fields)
        self.page_size = fields.get("shared_memory_page_size_hint_bytes", 4096)
        self.settings = self.invoke("InitializeConnection", request,
                                    pb.InitializeConnectionResponse, fds=fds)
        return self.settings

    def listen(self):
        self.async_call = self.call("GetAsyncCommand", on_reply=self._command)

    def register(self, source, method="RegisterDataSource"):
        """A name, or keyword fields of a DataSourceDescriptor as a dict."""
        fields = {"name": source} if isinstance(source, str) else dict(source)
        fields.setdefault("will_notify_on_start", True)
        fields.setdefault("will_notify_on_stop", True)
        request = pb.RegisterDataSourceRequest()
        request.data_source_descriptor.CopyFrom(
            pb.DataSourceDescriptor(**fields))
        self.invoke(method, request)

    def unregister(self, name):
        self.invoke("UnregisterDataSource",
                    pb.UnregisterDataSourceRequest(data_source_name=name))

    def _command(self, raw):
        response = pb.GetAsyncCommandResponse.FromString(raw)
        kind = response.WhichOneof("cmd")
        command = getattr(response, kind) if kind else None
        self.commands.append((kind, command))
        if kind == "setup_tracing":
            if self.fds:
                self.page_size = 1024 * command.shared_buffer_page_size_kb
                self.map(self.take_fd())
        elif kind == "setup_data_source":
            self.instances[command.new_instance_id] = Instance(command)
        elif kind == "start_data_source":
            self._started(command)
        elif kind == "stop_data_source":
            self._stopped(command)
        elif kind == "flush":
            if self.before_flush:
                self.before_flush(command)
            if self.answers_flush:
                self.commit([], ask=False, flush_request_id=command.request_id)
        elif kind == "clear_incremental_state":
            self.clears += 1

    def map(self, fd):
        self.memory_fd = fd
        self.shm = abi.SharedMemory(fd, self.page_size)

    def _started(self, command):
        instance = self.instances[command.new_instance_id]
        instance.state = "started"
        if self.acks_start:
            self.notify_started(instance)

    def _stopped(self, command):
        instance = self.instances[command.instance_id]
        if self.before_stop:
            self.before_stop(instance)
        instance.state = "stopped"
        if self.acks_stop:
            self.notify_stopped(instance)

    def notify_started(self, instance):
        self.call("NotifyDataSourceStarted", pb.NotifyDataSourceStartedRequest(
            data_source_id=instance.id), drop_reply=True)

    def notify_stopped(self, instance):
        self.call("NotifyDataSourceStopped", pb.NotifyDataSourceStoppedRequest(
            data_source_id=instance.id), drop_reply=True)

    def started(self):
        return [i for i in self.instances.values() if i.state == "started"]

    def saw(self, kind):
        """Commands of one kind, in order."""
        return [command for name, command in self.commands if name == kind]

    def wait_started(self, count=1):
        """The instances that run, once there are `count` of them."""
        self.loop.until(lambda: len(self.started()) >= count,
                        f"{self.name}: {count} data sources started")
        return self.started()

    def wait_command(self, kind, count=1):
        self.loop.until(lambda: len(self.saw(kind)) >= count,
                        f"{self.name}: command {kind}")
        return self.saw(kind)[-1]

    def writer(self, instance=None, register=True, writer_id=None):
        """A new sequence into an instance's buffer (default: the first)."""
        if instance is None:
            instance = self.wait_started()[0]
        if writer_id is None:
            writer_id = self._next_writer
            self._next_writer += 1
        buffer = instance if isinstance(instance, int) else instance.buffer
        return Writer(self, writer_id, buffer, register)

    def number_at_flush(self, count):
        """A new writer's packets, when the service first asks for a flush.

        For sessions that end by themselves: however long the machine keeps this
        test waiting, they are written before the end.
        """
        def write(_):
            self.before_flush = None
            self.writer().number(count, ask=False)
        self.before_flush = write

    def register_writer(self, writer_id, buffer):
        self.call("RegisterTraceWriter", pb.RegisterTraceWriterRequest(
            trace_writer_id=writer_id, target_buffer=buffer), drop_reply=True)

    def unregister_writer(self, writer_id):
        self.call("UnregisterTraceWriter", pb.UnregisterTraceWriterRequest(
            trace_writer_id=writer_id), drop_reply=True)

    def chunk_room(self):
        """Bytes for fragments in a chunk that fills a page."""
        return self.page_size - abi.PAGE_HEADER - abi.CHUNK_HEADER

    def place(self, data):
        """A ChunksToMove for a chunk; None when shared memory is full."""
        move = pb.CommitDataRequest.ChunksToMove(page=0, chunk=0)
        if self.shm is None:
            move.data = data
            return move
        page = self.shm.free_page()
        if page is None:
            return None
        self.shm.put(page, 0, data)
        move.page = page
        return move

    def commit(self, moves=(), patches=(), ask=True, **fields):
        """CommitData; waits for its reply unless not ask."""
        request = pb.CommitDataRequest(
            chunks_to_move=moves, chunks_to_patch=patches, **fields)
        if ask:
            self.invoke("CommitData", request)
        else:
            self.call("CommitData", request, drop_reply=True)

    def sync(self):
        self.invoke("Sync")

    def activate(self, *names):
        self.call("ActivateTriggers",
                  pb.ActivateTriggersRequest(trigger_names=names),
                  drop_reply=True)

    def close(self):
        super().close()
        if self.shm is not None:
            self.shm.close()
            self.shm = None
            os.close(self.memory_fd)
