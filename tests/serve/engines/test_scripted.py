"""The scripted engine, alone and behind `dspy.LM`."""

import time

import pytest
from engine_calls import ask, reply, reply_blocking

from medexam.errors import ServerError, SpecError
from medexam.serve import ScriptedEngine, build_engine
from medexam.specs import EngineNeeds, ModelSpec
from table_cases import read_table

TABLE = {
    "France": "Paris",
    "long": {"text": "On and", "finish_reason": "length"},
    "guided": "{Answer: 10}",
    "*": "I do not know",
}


@pytest.mark.parametrize(*read_table("scripted_replies"))
async def test_replies(words, settings, text, finish_reason) -> None:
    engine, asked = ScriptedEngine(TABLE), ask(words, **settings)
    answer = await reply(engine, asked)
    assert (answer.text, answer.finish_reason) == (text, finish_reason)
    assert reply_blocking(engine, asked) == answer
    assert engine.dialogues == [asked, asked]


async def test_from_a_file(tmp_path) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text('France: Paris\n"*": {text: "No", finish_reason: length}\n', encoding="utf-8")
    engine = await build_engine(ModelSpec(engine="scripted", path=path), EngineNeeds(guided=True))
    assert (await reply(engine, ask("France?"))).text == "Paris"
    assert engine.info().revision
    await engine.aclose()


FALTERING = '"*": [{error: server, text: "no"}, {text: "Yes", wait_s: 0.01}]'


@pytest.mark.parametrize("asks", [reply, reply_blocking])
async def test_replies_come_in_turn_and_neither_failures_nor_waits_make_another_script(tmp_path, asks) -> None:
    (path := tmp_path / "replies.yaml").write_text(FALTERING)
    engine = ScriptedEngine.from_file(path)
    for _ in range(2):
        with pytest.raises(ServerError, match="no"):
            reply_blocking(engine, ask("Why?"))
        begun = time.monotonic()
        answer = asks(engine, ask("Why?"))
        assert (answer if asks is reply_blocking else await answer).text == "Yes"
        assert time.monotonic() - begun >= 0.01
    path.write_text('"*": "Yes"')
    assert ScriptedEngine.from_file(path).info().revision == engine.info().revision
    path.write_text('"*": {error: context}')
    assert ScriptedEngine.from_file(path).info().revision != engine.info().revision


@pytest.mark.parametrize(*read_table("refused_scripts"))
async def test_a_bad_file_is_one_clear_line(tmp_path, content, message) -> None:
    path = tmp_path / "replies.yaml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(SpecError, match=message) as caught:
        await build_engine(ModelSpec(engine="scripted", path=path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
