#!/usr/bin/env python3
"""deploy/containers: what compose and Kubernetes are told is there, and the
programs take their flags and settings.

    test_containers.py

Prints TAP.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

from harness import tap

FOLDER = pathlib.Path(os.environ["SOURCE_ROOT"]) / "deploy/containers"
PROGRAMS = {"/usr/bin/tributary": os.environ["TRIBUTARY"],
            "/usr/bin/tributary-relay": os.environ["TRIBUTARY_RELAY"],
            "/usr/bin/tributaryd": os.environ["TRIBUTARYD"]}
PORT = 7443


def settings():
    return (FOLDER / "tributaryd.conf").read_text("utf-8")


class Containers(unittest.TestCase):
    def check_takes(self, command, *more):
        """The program knows its flags and settings."""
        with tempfile.TemporaryDirectory(prefix="trib") as folder:
            subprocess.run([PROGRAMS["/usr/bin/tributary"], "cert", "init",
                            folder + "/tls"], check=True,
                           stdout=subprocess.DEVNULL)
            for name in ("traces", "spool"):
                os.mkdir(f"{folder}/{name}")
            places = {"/etc/tributary/tls": folder + "/tls",
                      "/var/lib/tributary-relay": folder + "/spool",
                      "/var/lib/tributary": folder + "/traces"}

            def moved(text):
                return re.sub("|".join(places), lambda m: places[m[0]], text)

            path = folder + "/tributaryd.conf"
            with open(path, "w", encoding="utf-8") as file:
                file.write(moved(settings()))
            words = [PROGRAMS[command[0]], *(moved(word).replace(
                "/etc/tributary/tributaryd.conf", path)
                for word in command[1:])]
            done = subprocess.run([*words, *more], capture_output=True,
                                  text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def check_probe(self, command):
        """One that asks a daemon which is not there says only so."""
        done = subprocess.run(
            [PROGRAMS[command[0]], *command[1:]], capture_output=True,
            text=True, env={"PERFETTO_CONSUMER_SOCK_NAME": "/nowhere/c",
                            "RUNTIME_DIRECTORY": "/nowhere"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "no (daemon|relay)")

    def test_compose(self):
        with open(FOLDER / "compose.yaml", encoding="utf-8") as file:
            found = yaml.safe_load(file)
        self.assertEqual(set(found["services"]), {"collector", "relay"})
        for service in found["services"].values():
            self.assertTrue(service["read_only"])
            self.assertEqual(service["user"], "65534:65534")
            self.assertEqual(service["cap_drop"], ["ALL"])
            self.check_takes([*service.get("entrypoint",
                                           ["/usr/bin/tributaryd"]),
                              *service["command"]], "--check-config")
            kind, *probe = service["healthcheck"]["test"]
            self.assertEqual(kind, "CMD")
            self.check_probe(probe)
            for volume in service["volumes"]:
                source = volume.split(":")[0]
                if not source.startswith("."):
                    self.assertIn(source, found["volumes"])
        ports = found["services"]["collector"]["ports"]
        self.assertEqual(ports, [f"{PORT}:{PORT}"])

    def check_pod(self, workload, maps):
        spec = workload["spec"]
        labels = spec["template"]["metadata"]["labels"]
        self.assertEqual(spec["selector"]["matchLabels"], labels)
        pod = spec["template"]["spec"]
        volumes = {v["name"] for v in pod["volumes"]} | {
            claim["metadata"]["name"]
            for claim in spec.get("volumeClaimTemplates", ())}
        for volume in pod["volumes"]:
            if "configMap" in volume:
                self.assertIn(volume["configMap"]["name"], maps)
        container, = pod["containers"]
        self.assertEqual({m["name"] for m in container["volumeMounts"]},
                         volumes)
        self.assertEqual(container["securityContext"], {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]}})
        self.check_takes([*container["command"], *container["args"]],
                         "--check-config")
        self.check_probe(container["livenessProbe"]["exec"]["command"])
        return labels, pod, container

    def test_kubernetes(self):
        with open(FOLDER / "kubernetes.yaml", encoding="utf-8") as file:
            documents = {d["kind"]: d for d in yaml.safe_load_all(file)}
        self.assertEqual({k: d["apiVersion"] for k, d in documents.items()}, {
            "ConfigMap": "v1", "Service": "v1", "StatefulSet": "apps/v1",
            "DaemonSet": "apps/v1"})
        settings_there = documents["ConfigMap"]["data"]["tributaryd.conf"]
        self.assertEqual(settings_there,
                         re.sub("(?m)^#.*\n", "", settings()))
        maps = {documents["ConfigMap"]["metadata"]["name"]}
        labels, pod, container = self.check_pod(documents["StatefulSet"], maps)
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertEqual(pod["securityContext"]["runAsUser"], 65534)
        port, = container["ports"]
        self.assertEqual(port["containerPort"], PORT)
        service = documents["Service"]
        self.assertEqual(service["spec"]["selector"], labels)
        self.assertEqual(service["spec"]["ports"][0]["targetPort"],
                         port["name"])
        self.assertEqual(documents["StatefulSet"]["spec"]["serviceName"],
                         service["metadata"]["name"])
        _, _, relay = self.check_pod(documents["DaemonSet"], maps)
        self.assertEqual(relay["args"][:2], [
            "--to", f"tls://{service['metadata']['name']}:{PORT}"])


if __name__ == "__main__":
    sys.exit(tap.main())
