"""CasiMedicos-Arg: explained exam questions, as an exam and as extraction."""
