# shellcheck shell=sh
# Picks the shell for the text in $2, then becomes it. $1: auto, or the one shell to use. The guard
# likes busybox (smallest, read -t, no retries of a failed fork), tried before it is trusted. The
# kill must not need a fork to start, so it takes bash by name, else whatever sh is.
unset BASH_ENV ENV
want=$1 text=$2
shift 2
case $0,$want in
stressor-guard,auto | *,busybox)
    # shellcheck disable=SC2016
    if [ "$want" = busybox ] || { command -v busybox && busybox ash -c \
        'read -t 0.01 x </dev/null; [ $? -eq 1 ] && [ /proc/self/ns/mnt -ef /proc/self/ns/mnt ]'; } \
        >/dev/null 2>&1; then
        exec busybox ash -c "$text" "$0" busybox "$text" "$@"
    fi
    ;;
esac
case $want in
auto | bash) if command -v bash >/dev/null 2>&1; then exec bash -c "$text" "$0" bash "$text" "$@"; fi ;;
esac
case $want in
dash) exec dash -c "$text" "$0" dash "$text" "$@" ;;
auto) exec sh -c "$text" "$0" sh "$text" "$@" ;;
esac
echo "no such shell: $want" >&2
exit 127
