"""Every message of protos/ under its own name: pb.TraceConfig, pb.IPCFrame.

The modules are generated at build time by protoc; PROTO_PYTHON names the
folder that holds them.
"""

import importlib
import os
import pkgutil
import sys

sys.path.insert(0, os.environ["PROTO_PYTHON"])

import protos  # noqa: E402  (a namespace package: the generated modules)

for _module in pkgutil.iter_modules(protos.__path__):
    _generated = importlib.import_module("protos." + _module.name)
    _file = _generated.DESCRIPTOR
    for _name in [*_file.message_types_by_name, *_file.enum_types_by_name]:
        globals()[_name] = getattr(_generated, _name)
