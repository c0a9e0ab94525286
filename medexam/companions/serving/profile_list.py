"""The table of shipped profiles, and the GPUs that they take."""

import sys

from medexam.companions.serving.launch.profile import load_profile, profile_names
from medexam.toolkit.commands import Terminal, print_tables
from medexam.toolkit.tables import Table


def print_profiles() -> None:
    """Print it on standard output."""
    profiles = {name: load_profile(name) for name in profile_names()}
    sizes = sorted({layout.gpu_gb for profile in profiles.values() for layout in profile.layouts if layout.gpu_gb})
    rows = []
    for name, profile in profiles.items():
        cells = []
        for size in sizes:
            layouts = [layout for layout in profile.layouts if layout.gpu_gb == size]
            best_layout = min(layouts, key=lambda layout: layout.nodes, default=None)
            over = f" on {best_layout.nodes} nodes" if best_layout and best_layout.nodes > 1 else ""
            cells.append(f"{best_layout.gpus} x {best_layout.max_context // 1024}k{over}" if best_layout else "")
        gated = " (gated)" if profile.gated else ""
        variants = " ".join(f":{variant}" for variant in profile.variants)
        rows.append((name, f"{profile.model}{gated}", variants, f"{profile.weights_gb:g} GB", *cells))
    headers = ("Profile", "Model", "Variants", "Weights", *(f"{size:g} GB" for size in sizes))
    console = Terminal() if sys.stdout.isatty() else Terminal(width=200)
    legend = (
        "GPUs that one server takes, by the memory of a card, and the thousands of tokens of its context. A profile "
        "without any runs on the processor. A variant, such as llama-3.1-8b:awq, has quantised weights."
    )
    print_tables(console, [(Table("", headers, tuple(rows), text_columns=3), legend)])
