#!/usr/bin/env python3
"""Python modules for all of protos/: generate_protos.py PROTOC ROOT OUT STAMP.

Meson cannot declare outputs below a folder of the target, so a stamp stands
for all of them.
"""

import glob
import os
import subprocess
import sys

protoc, root, out, stamp = sys.argv[1:]
os.makedirs(out, exist_ok=True)
subprocess.run([protoc, f"--proto_path={root}", f"--python_out={out}",
                *sorted(glob.glob(os.path.join(root, "protos", "*.proto")))],
               check=True)
open(stamp, "w").close()
