"""What option scores say: calibration, positions, abstention."""
