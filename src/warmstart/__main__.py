"""The program: `warmstart`, or `python -m warmstart`."""

import sys


def main() -> None:
    """Run a command. Hooks bypass the command line, because an agent waits for them and for every import."""
    if sys.argv[1:3] == ["hook", "run"]:
        from warmstart.doors.hooks.calls import main as run_hook

        run_hook(sys.argv[3:])
    elif sys.argv[1:4] == ["confirm", "guard", "claude-code"] and "--help" not in sys.argv:
        from warmstart.doors.guard.claude_code import main as run_guard

        run_guard(sys.argv[4:])
    else:
        from warmstart.doors.cli.main import main as run_command

        run_command(prog_name="warmstart")


if __name__ == "__main__":
    main()
