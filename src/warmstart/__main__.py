"""The program: `warmstart`, or `python -m warmstart`."""

import sys

_GUARDED = (["claude-code"], ["codex"])  # agents whose hooks call the guard


def main() -> None:
    """Run a command. Hooks bypass the command line, because an agent waits for them and for every import."""
    if sys.argv[1:3] == ["hook", "run"] and sys.argv[3:4] != ["--help"]:
        from warmstart.doors.hooks.calls import main as run_hook

        run_hook(sys.argv[3:])
    elif sys.argv[1:3] == ["confirm", "guard"] and sys.argv[3:4] in _GUARDED and "--help" not in sys.argv:
        from warmstart.doors.guard.agent_hook import main as run_guard

        run_guard(sys.argv[3:])
    elif sys.argv[1:] == ["--version"]:
        from warmstart import __version__

        sys.stdout.write(f"warmstart, version {__version__}\n")
    elif not _run_quickly():
        from warmstart.doors.cli.main import main as run_command

        run_command(prog_name="warmstart")


def _run_quickly() -> bool:
    """Run a command for which agents wait; return False for the others, and where the line is unusual."""
    if sys.argv[1:2] != ["provision"] and sys.argv[1:3] != ["notes", "brief"]:
        return False
    import gc

    from warmstart.doors.cli.light_msgspec import load_msgspec

    gc.set_threshold(50_000)  # imports make many objects, which all stay
    load_msgspec()
    from warmstart.doors.cli.quick import run_quickly

    return run_quickly(sys.argv[1:])


if __name__ == "__main__":
    main()
