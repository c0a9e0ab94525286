"""Sets exam booklets as PDF in many ways, so that a reading can be compared with the text that was set."""
