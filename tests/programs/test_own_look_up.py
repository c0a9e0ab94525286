"""The example of a strategy that decides itself what to look up, with real BM25 over real passages."""

import json
from pathlib import Path

import dspy

from asked import requests_of
from medexam.experiments import plan_retrieval
from medexam.experiments.plan.text_search import TextSearch
from medexam.programs import ProgramContext, RecordingEngine, build_prediction, build_program, read_again
from medexam.retrievers import load_corpus, plan_retriever
from medexam.serve import ScriptedEngine
from medexam.specs import CellSpec

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "retrievers" / "corpus_sample" / "passages.jsonl.gz"


def test_react_looks_up_passages_and_answers_from_them(question, tmp_path) -> None:
    wanted = load_corpus(CORPUS).passages[7]

    def reply(turn: str) -> str:
        if "next_tool_name" not in turn:
            return f"[[ ## reasoning ## ]]\n{'It is said there.' if wanted.content in turn else 'No.'}\n\n" + (
                "[[ ## answer ## ]]\n2\n\n[[ ## completed ## ]]"
            )
        fields = {
            "next_thought": "I look it up.",
            "next_tool_name": "finish" if wanted.content in turn else "search",
            "next_tool_args": json.dumps({} if wanted.content in turn else {"query": wanted.text[:200]}),
        }
        return "\n\n".join([*(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items()), "[[ ## completed ## ]]"])

    program = {
        "kind": f"{ROOT / 'examples' / 'look_up.py'}:LookUp",
        "args": {"steps": 4},
        "retriever": {"kind": "bm25", "corpus": str(CORPUS)},
    }
    spec = CellSpec.model_validate({"name": "x", "program": program}).program
    retrieval = plan_retrieval(spec.retrieval, plan_retriever(spec.retriever), tmp_path, "en")
    retrieval.fill([question])
    engine = ScriptedEngine(reply)
    lm = dspy.LM("medexam/scripted", engine=RecordingEngine(engine.sync), cache=False, num_retries=0)
    made = build_program(spec, "en", ProgramContext(finder=retrieval, search=TextSearch(retrieval)))
    with dspy.context(lm=lm):
        said = made(question=question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    assert (prediction.answer, prediction.rationale) == (2, "It is said there.")
    # It searches, finds, finishes and answers.
    assert len(requests_of(engine)) == len(prediction.generations) == 3
    with dspy.context(lm=lm):
        assert read_again(made, question, prediction) == prediction
