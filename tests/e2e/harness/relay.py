"""A classic relay's own connection: RelayPort."""

from . import pb
from .ipc import Port


class Relay(Port):
    service = "RelayPort"

    def __init__(self, loop, address, identity):
        super().__init__(loop, address, bind=False)
        frame = pb.IPCFrame()
        for key, value in identity.items():
            setattr(frame.set_peer_identity, key, value)
        self.send_frame(frame)
        self.bind()

    def init(self, **system_info):
        request = pb.InitRelayRequest()
        request.system_info.CopyFrom(pb.SystemInfo(**system_info))
        self.invoke("InitRelay", request)

    def sync(self, phase, clocks):
        """clocks: {clock id: nanoseconds}."""
        request = pb.SyncClockRequest(
            phase=pb.SyncClockRequest.Phase.Value(phase))
        for clock_id, timestamp in clocks.items():
            request.clocks.add(clock_id=clock_id, timestamp=timestamp)
        self.invoke("SyncClock", request)
