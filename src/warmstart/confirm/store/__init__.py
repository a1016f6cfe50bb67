"""The confirmation database: one protocol, implemented for SQLite and PostgreSQL."""
