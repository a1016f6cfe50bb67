"""The MCP door: tools, resources and a prompt for clients of the Model Context Protocol. Needs the extra `mcp`."""
