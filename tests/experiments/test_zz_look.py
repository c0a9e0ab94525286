import shutil
from pathlib import Path
from medexam.experiments.tracking import track, default_tracking_uri
def test_x(make_run, tmp_path):
    runs=[make_run({"kind":"zero_shot"},"rrwu",model={"engine":"embedded"}),make_run({"kind":"zero_shot","answer_format":"guided"},"rrw")]
    track(runs,tracking_uri=default_tracking_uri(Path("/tmp/ui/runs")))
