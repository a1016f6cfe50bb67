"""The Hermes plugin: new sessions start warm, `warm_session` and `/warm` are at hand, and every trial is closed.

Hermes loads `plugin.py` by the entry point `hermes_agent.plugins` once `hermes plugins enable warmstart` was said. All
of it runs inside Hermes' process, so two rules hold everywhere in here: nothing is ever raised into Hermes, and
Hermes' own database is never opened by Warmstart's SQLite in this process (see `host.py` and `closing.py`).
"""
