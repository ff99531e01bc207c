"""A consumer: sessions, and what comes out of them."""

from . import pb
from .ipc import Port
from .trace import Trace


class Consumer(Port):
    service = "ConsumerPort"

    def enable(self, config, fds=()):
        """EnableTracing; the call ends when tracing does."""
        request = pb.EnableTracingRequest()
        request.trace_config.CopyFrom(config)
        self.session = self.call("EnableTracing", request, fds=fds)
        return self.session

    def refused(self, config, fds=()):
        """The sentence with which the service refuses a config."""
        call = self.enable(config, fds)
        self.loop.until(call.ended, "the config is refused")
        if not call.replies or call.rejected:
            return "" if call.rejected else None
        return pb.EnableTracingResponse.FromString(call.replies[-1]).error

    def ended(self, timeout=None):
        """Waits for the end of tracing; its EnableTracingResponse."""
        extra = {} if timeout is None else {"timeout": timeout}
        self.loop.until(self.session.ended, "tracing ends", **extra)
        return self.finish(self.session, pb.EnableTracingResponse)

    def start_tracing(self):
        self.invoke("StartTracing")

    def change(self, config):
        request = pb.ChangeTraceConfigRequest()
        request.trace_config.CopyFrom(config)
        return self.invoke("ChangeTraceConfig", request)

    def flush(self, timeout_ms=0, flags=0):
        request = pb.FlushRequest(timeout_ms=timeout_ms, flags=flags)
        self.invoke("Flush", request)

    def disable(self):
        self.invoke("DisableTracing")

    def stop(self):
        """Ends tracing and waits until it has ended."""
        self.disable()
        return self.ended()

    def free(self):
        self.invoke("FreeBuffers")

    def read_raw(self):
        """The bytes of all packets there are now."""
        call = self.call("ReadBuffers")
        self.finish(call)
        return join_slices(call.replies)

    def read(self):
        """Reads all there is now; a Trace."""
        return Trace(self.read_raw())

    def stats(self):
        return self.invoke("GetTraceStats", None,
                           pb.GetTraceStatsResponse).trace_stats

    def query(self, sessions_only=False):
        """The whole TracingServiceState."""
        call = self.call("QueryServiceState", pb.QueryServiceStateRequest(
            sessions_only=sessions_only))
        self.finish(call)
        whole = pb.QueryServiceStateResponse()
        for part in call.replies:
            whole.MergeFromString(part)
        return whole.service_state

    def capabilities(self):
        return self.invoke("QueryCapabilities", None,
                           pb.QueryCapabilitiesResponse).capabilities

    def observe(self, *types):
        """A growing list of ObservableEvents."""
        events = []
        request = pb.ObserveEventsRequest(events_to_observe=types)
        self.observer = self.call(
            "ObserveEvents", request, on_reply=lambda raw: events.append(
                pb.ObserveEventsResponse.FromString(raw).events))
        return events

    def detach(self, key):
        self.invoke("Detach", pb.DetachRequest(key=key))

    def attach(self, key):
        return self.invoke("Attach", pb.AttachRequest(key=key),
                           pb.AttachResponse)

    def clone(self, fds=(), **selector):
        return self.invoke("CloneSession", pb.CloneSessionRequest(**selector),
                           pb.CloneSessionResponse, fds=fds)


def join_slices(replies):
    """The packets that a stream of ReadBuffersResponse carries."""
    packets, open_packet = [], None
    for raw in replies:
        for part in pb.ReadBuffersResponse.FromString(raw).slices:
            open_packet = (open_packet or b"") + part.data
            if part.last_slice_for_packet:
                packets.append(open_packet)
                open_packet = None
    assert open_packet is None, "a packet without its last slice"
    return packets


def buffers(*sizes_kb, policy="RING_BUFFER"):
    config = pb.TraceConfig.BufferConfig
    return [config(size_kb=size,
                   fill_policy=config.FillPolicy.Value(policy))
            for size in sizes_kb]


def source(name, **fields):
    """A data source of a config; fields of DataSourceConfig, or a filter."""
    out = pb.TraceConfig.DataSource()
    for key in ("producer_name_filter", "producer_name_regex_filter",
                "machine_name_filter"):
        getattr(out, key).extend(fields.pop(key, ()))
    out.config.name = name
    for key, value in fields.items():
        setattr(out.config, key, value)
    return out


def config(*names, size_kb=1024, policy="RING_BUFFER", **fields):
    """A plain config: one buffer, data sources by name (or built)."""
    fields.setdefault("buffers", buffers(size_kb, policy=policy))
    return pb.TraceConfig(
        data_sources=[source(n) if isinstance(n, str) else n for n in names],
        **fields)
