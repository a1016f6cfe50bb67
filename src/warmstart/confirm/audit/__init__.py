"""The append-only, hash-chained record of every change, and its verification."""
