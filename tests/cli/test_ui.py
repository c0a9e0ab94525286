"""`medexam ui`: what it says before it serves."""

import pytest

from medexam.cli import load_command


@pytest.mark.parametrize(("host", "warns"), [("0.0.0.0", True), ("::1", False), ("127.0.0.1", False)])
def test_an_open_address_is_warned_of(host: str, warns: bool, uri: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr("medexam.experiments.track.ui.check_port", lambda *_: None)
    monkeypatch.setattr("medexam.experiments.track.ui.serve_ui", lambda *_, **__: 0)
    load_command("ui")(["--tracking-uri", uri, "--host", host, "--port", "5099"], standalone_mode=False)
    said = capsys.readouterr().err
    assert ("asks for no password" in said) == warns
    assert ("ssh -L 5099:127.0.0.1:5099" in said) == warns
