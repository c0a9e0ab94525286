"""Headless Chromium for tests and benches, through its DevTools protocol: open a page, run scripts in it, look."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import aiohttp

from waiting import BACKSTOP_S

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
START_S = ANSWER_S = BACKSTOP_S
"""Far more than a start or an answer takes on a busy machine."""


class Browser:
    """One browser with one tab; a context manager that ends its process."""

    def __init__(self, folder: Path, *, width: int = 1280, height: int = 900) -> None:
        """`folder` takes the profile; width and height in CSS pixels."""
        self._folder, self._size = folder, (width, height)
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self.events: list[dict[str, Any]] = []
        """Everything that the browser said unasked, such as requests and messages of the console."""

    def __enter__(self) -> Self:
        assert CHROMIUM is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            f"--user-data-dir={self._folder / 'profile'}",
            "--window-size={},{}".format(*self._size),
            "about:blank",
        ]
        environment = {**os.environ, "HOME": str(self._folder)}
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        try:
            self._loop.run_until_complete(self._connect())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._disconnect())
        self._end()

    def open(self, address: str) -> None:
        """Go to an address and wait until the page and all of its scripts are there."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str, *, seconds: float = ANSWER_S) -> Any:
        """The value of an expression as soon as it is neither null, undefined, false nor 0; an element is `{}`."""
        deadline = time.monotonic() + seconds
        while (value := self.run(condition)) in (None, False, 0):
            assert time.monotonic() < deadline, f"not true after {seconds} s: {condition}"
            time.sleep(0.05)
        return value

    def press(self, key: str) -> None:
        """A key, by the name that pages know it under."""
        text = key if len(key) == 1 else {"Enter": "\r"}.get(key)
        codes = {"Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9, "End": 35, "Home": 36, "Escape": 27}
        known = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self.send("Input.dispatchKeyEvent", type="keyDown", **known, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Save what is in sight, or the whole page, as PNG."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        return self._loop.run_until_complete(asyncio.wait_for(self._send(method, parameters), ANSWER_S))

    async def _connect(self) -> None:
        port = self._folder / "profile" / "DevToolsActivePort"
        deadline = time.monotonic() + START_S
        while not (port.exists() and len(port.read_text().splitlines()) == 2):
            assert self._process.poll() is None, "Chromium ended"
            assert time.monotonic() < deadline, f"Chromium was not ready after {START_S} s"
            await asyncio.sleep(0.05)
        self._session = aiohttp.ClientSession()
        address = f"http://127.0.0.1:{port.read_text().splitlines()[0]}/json/list"
        tabs: list[dict[str, Any]] = []
        while not tabs:
            async with self._session.get(address) as reply:
                tabs = [tab for tab in await reply.json() if tab["type"] == "page"]
        self._socket = await self._session.ws_connect(tabs[0]["webSocketDebuggerUrl"], max_msg_size=0)
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self._send(f"{domain}.enable", {})

    async def _send(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_str(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            said = json.loads((await self._socket.receive()).data)
            if said.get("id") == self._number:
                assert "error" not in said, said["error"]
                result: dict[str, Any] = said["result"]
                return result
            self.events.append(said)

    async def _disconnect(self) -> None:
        await self._socket.close()
        await self._session.close()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=BACKSTOP_S)
        self._loop.close()
