"""The Hermes plugin: new sessions start warm, `warm_session` and `/warm` are available, and every trial is closed.

Hermes loads `plugin.py` through the entry point `hermes_agent.plugins` after `hermes plugins enable warmstart`. It all
runs inside Hermes' process, so two rules hold: nothing is ever raised into Hermes, and Warmstart's SQLite never opens
Hermes' own database in this process (see `host.py` and `close.py`).
"""
