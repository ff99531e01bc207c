"""A real Prometheus, and promtool, where they are installed."""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request

from .loop import SCALE
from .ports import free_port

PROMTOOL = shutil.which("promtool")
PROMETHEUS = shutil.which("prometheus")
WITHOUT = "is not installed (deploy/install-deps metrics)"


def check_metrics(case, text):
    """promtool has nothing to say about it."""
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text,
                          capture_output=True, text=True)
    case.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


def numbers(text):
    """{series: value} of an exposition."""
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines() if not line.startswith("#")}


class Prometheus:
    """Scrapes each second by these scrape_configs, until the case ends."""

    def __init__(self, case, scrape_configs):
        self._port = free_port()
        settings = case.path("prometheus.yml")
        with open(settings, "w") as file:
            json.dump({"global": {"scrape_interval": "1s"},
                       "scrape_configs": scrape_configs}, file)
        with open(case.path("prometheus.log"), "wb") as log:
            self._process = subprocess.Popen(
                [PROMETHEUS, f"--config.file={settings}",
                 f"--storage.tsdb.path={case.path('tsdb')}",
                 f"--web.listen-address=127.0.0.1:{self._port}"],
                stdout=log, stderr=log)
        case.addCleanup(self._end)

    def _end(self):
        self._process.terminate()
        self._process.wait(60 * SCALE)

    def ask(self, query):
        """The first value, as text; None: it does not answer yet."""
        url = (f"http://127.0.0.1:{self._port}/api/v1/query?query=" +
               urllib.parse.quote(query))
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return None
        return found and found[0]["value"][1]
