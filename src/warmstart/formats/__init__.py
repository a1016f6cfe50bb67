"""Transcripts in: one module a format, each with `NAME`, `sniff(head)` and `read(source, judge)`.

Adding a format is one module, its line in FORMATS, and two fixture files under tests/data/<format>/.
"""
