"""Exam booklets as the Ministry publishes them, made into tables of exams."""
