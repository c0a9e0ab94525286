"""Questions that quiz tools export: Moodle's GIFT and XML, Aiken, QTI 2 and 3, and Anki's notes."""
