#!/bin/sh
# Entry point of the load image: it refuses to start late, and nothing that it starts outlives its
# end. Needs no API and no guard: a kubelet that comes back hours later must not start old load.
#   STRESSOR_RUN       the run, left in the environment as its mark
#   STRESSOR_START_BY  Unix seconds: not started after this moment
#   STRESSOR_END_BY    Unix seconds: ended at this moment
# Arguments: the tool's own command line. Nothing but the tool writes to stdout.
set -u

refuse() {
    echo "stressor-entry: not started: $*" >&2
    exit 78
}

seconds() {
    case $2 in
    '' | *[!0-9]* | ????????????*) refuse "$1 is no Unix time: '$2'" ;;
    esac
}

[ "$#" -gt 0 ] || refuse "no command"
[ -n "${STRESSOR_RUN:-}" ] || refuse "STRESSOR_RUN is missing"
seconds STRESSOR_START_BY "${STRESSOR_START_BY:-}"
seconds STRESSOR_END_BY "${STRESSOR_END_BY:-}"
now=$(date +%s) || refuse "the clock cannot be read"
seconds date "$now"
[ "$now" -le "$STRESSOR_START_BY" ] || refuse "$((now - STRESSOR_START_BY)) s too late"
left=$((STRESSOR_END_BY - now))
[ "$left" -gt 0 ] || refuse "its end is past"
exec timeout -k 1 "$left" "$@"
