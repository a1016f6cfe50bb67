#!/bin/sh
# Run the `warmstart` that is installed on this machine. Nothing is ever downloaded: without it, a session that starts
# shows the person one line, and everything else is silent.
for program in warmstart "$HOME/.local/bin/warmstart"; do # pipx and uv put it there, and desktop apps have a short PATH
  command -v "$program" >/dev/null 2>&1 && exec "$program" "$@"
done
if [ "$1" = hook ]; then
  case "$(cat)" in
  *'"hook_event_name":"SessionStart"'*)
    echo '{"systemMessage":"The warmstart plugin does nothing yet: install its program with `pipx install warmstart[mcp]`."}'
    ;;
  esac
  exit 0
fi
echo 'warmstart is not installed: pipx install warmstart[mcp]' >&2
exit 127
