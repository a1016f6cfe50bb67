"""The confirmation database: one protocol, SQLite and PostgreSQL behind it."""
