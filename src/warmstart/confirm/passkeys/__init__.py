"""Passkeys: devices that sign approvals, so that reading and writing the database does not suffice to forge one."""
