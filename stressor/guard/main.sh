# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# One text, three entries: the launcher names the first two; a file run by hand is the kill.
case $0 in
stressor-guard)
    STRESSOR_SHELL=$1 STRESSOR_TEXT=$2
    shift 2
    guard_main
    ;;
stressor-kill)
    STRESSOR_SHELL=$1 STRESSOR_TEXT=$2
    shift 2
    kill_main "$@"
    ;;
*)
    STRESSOR_SHELL=sh STRESSOR_TEXT=''
    kill_main "$@"
    ;;
esac
