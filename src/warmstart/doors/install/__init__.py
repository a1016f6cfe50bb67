"""Installers: our hooks, guard and MCP server in the settings of other programs."""
