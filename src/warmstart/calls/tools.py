"""The tool names of all agents, mapped onto the base set that Hermes uses. The setting `tools` adds further names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from warmstart import lazy_regex as re

TERMINAL, CODE = "terminal", "execute_code"
READ, WRITE, PATCH, SEARCH = "read_file", "write_file", "patch", "search_files"
WEB_SEARCH, WEB_READ, BROWSE = "web_search", "web_extract", "browser_navigate"
PROCESS, SEND, CRON, SESSIONS, FACTS = "process", "send_message", "cronjob", "session_search", "fact_store"

_NAMES = {
    TERMINAL: """
        terminal bash shell sh zsh powershell run_shell_command execute_command exec local_shell local_shell_call
        exec_command container.exec run_terminal_cmd run_command run_in_terminal run_terminal_command execute_bash
        cmd_run run shell_command command bash_command computer_terminal developer__shell unified_exec execute
        launch-process run_commands
    """,
    CODE: """
        execute_code code_execution python ipython run_ipython execute_ipython_cell run_code execute_python
        python_interpreter code_interpreter repl jupyter notebook_execute eval
    """,
    READ: """
        read_file read view view_file open_file cat open read_many_files notebookread list_dir list_directory ls list
        list_files list_code_definition_names read_text_file view_image zoom_image get_file_contents readfile
        list_code_usages get_diagnostics goto scroll_up scroll_down read_files read_currently_open_file
    """,
    WRITE: """
        write_file write create_file write_to_file create save_file new_file save-file create_new_file
    """,
    PATCH: """
        patch apply_patch edit edit_file multiedit replace replace_in_file str_replace str_replace_editor
        str_replace_based_edit_tool apply_diff search_replace insert notebookedit insert_edit_into_file
        replace_string_in_file search_and_replace insert_content undo_edit file_change update_file edit_notebook
        notebook_edit delete_file move_file str-replace-editor file_editor editor edit_existing_file
        single_find_and_replace multi_edit
    """,
    SEARCH: """
        search_files grep glob search find search_file_content grep_search file_search codebase_search ripgrep find_file
        search_dir search_file glob_file_search semantic_search toolsearch tool_search find_by_name find_files
        search_codebase file_glob_search
    """,
    WEB_SEARCH: "web_search websearch google_web_search search_web brave_web_search web_search_call",
    WEB_READ: """
        web_extract web_fetch webfetch fetch fetch_url url_fetch read_url fetch_webpage fetch_web_content
        fetch_url_content
    """,
    BROWSE: "browser_navigate browser_action browse browser navigate browser_click browser_snapshot",
    PROCESS: """
        process bashoutput killshell killbash taskoutput taskstop write_stdin kill_process task_stop monitor
        list_background_processes read_background_output read_bash write_bash stop_bash list_bash read_powershell
        write_powershell stop_powershell list_powershell
    """,
    SEND: "send_message send_email notify slack_send send_file attempt_completion",
    CRON: """
        cronjob schedule croncreate cronlist crondelete cron_create cron_list cron_delete create_reminder schedule_task
    """,
    SESSIONS: """
        session_search session_store_sql conversation_search recent_chats search_memory memory_search
    """,
    FACTS: "fact_store save_memory store_memory remember memory",
}
BASE_TOOLS = {base: tuple(names.split()) for base, names in _NAMES.items()}

_BY_NAME = {name: base for base, names in BASE_TOOLS.items() for name in names}
_PLAIN = frozenset(("bash", "shell", "terminal", "grep", "glob", "fetch", "python"))
_PREFIX = re.compile(r"^(?:functions?\.|default_api[.:]|builtin_|mcp__[^_]+(?:_[^_]+)*__|[a-z]+\.(?=[a-z]))")


def base_tool(name: str, more: Mapping[str, str] | None = None) -> str | None:
    """Return the base tool of a name; None for a tool of its own kind (a business function, most MCP tools)."""
    return more[name] if more and name in more else _base_tool(name)


@lru_cache(2_048)
def _base_tool(name: str) -> str | None:
    folded = name.lower().strip()
    bare = _PREFIX.sub("", folded, count=1)
    if bare != folded and folded.startswith("mcp__") and "_" not in bare and bare not in _PLAIN:
        return None  # a server's own `run` or `search` may do anything
    return _BY_NAME.get(folded) or _BY_NAME.get(bare)
