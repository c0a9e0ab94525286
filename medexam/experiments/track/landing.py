"""MLflow's server with a start page that a new browser opens on scores: `mlflow server --app-name medexam`.

MLflow keeps what its pages show in each browser. A browser that has kept nothing yet gets the page of runs instead of
that of traces, and for each experiment the view that `put_view` has kept: scores first, the best run on top. Whatever
its user chooses later stays.
"""

from pathlib import Path

from mlflow.server import app as pages
from mlflow.server.fastapi_app import app

from medexam.experiments.track.run_list import TAG

__all__ = ["app"]

_SCRIPT = """<script>(() => {
  const keep = (key, value) => { if (localStorage.getItem(key) === null) localStorage.setItem(key, value); };
  try {
    keep("mlflow.workflowType_v1", '"machine_learning"');
    keep("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
    const request = new XMLHttpRequest();
    request.open("POST", "ajax-api/2.0/mlflow/experiments/search", false);
    request.setRequestHeader("Content-Type", "application/json");
    request.send(JSON.stringify({max_results: 1000}));
    for (const experiment of JSON.parse(request.responseText).experiments || []) {
      const view = (experiment.tags || []).find((tag) => tag.key === "VIEW");
      const name = `ExperimentPage-["${experiment.experiment_id}"]`;
      if (view) keep(`MLflowLocalStorage-1.1-${name}-ReactComponentState`, view.value);
    }
  } catch (error) { console.warn("medexam: MLflow opens as it does by itself:", error); }
})();</script>""".replace("VIEW", TAG)


def start_page() -> str:
    """Return MLflow's own page, with our script before its own."""
    page = (Path(str(pages.static_folder)) / "index.html").read_text(encoding="utf-8")
    return page.replace("<head>", f"<head>{_SCRIPT}", 1)


if (Path(str(pages.static_folder)) / "index.html").is_file():
    pages.view_functions["serve"] = start_page
