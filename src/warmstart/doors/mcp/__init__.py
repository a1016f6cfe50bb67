"""The MCP door: tools, resources and a prompt for any client of the Model Context Protocol. Needs the extra `mcp`."""
