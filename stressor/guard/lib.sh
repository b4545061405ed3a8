# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# Shared by the resident guard and the one-shot kill: clock, process facts, text. POSIX sh plus
# `[ -ef ]`, which dash, busybox ash and bash have. Results come back in capital variables, because
# a command substitution is a fork, and a host in trouble may not be able to fork.

# A hardened profile exports TMOUT, and bash's read would then report a false end of file.
unset TMOUT BASH_ENV ENV CDPATH GREP_OPTIONS
LC_ALL=C
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:$PATH
export LC_ALL PATH
IFS=' 	
'
umask 077
# No pathname expansion, except where a function turns it on for one loop.
set -f

# What this shell can do. dash answers 2 to an unknown option of read, at end of file others say 1.
READ_T=yes
# shellcheck disable=SC3045
{ read -r -t 1 lib_x </dev/null; } 2>/dev/null
[ $? -eq 2 ] && READ_T=no
# Who has -t has -d, and keeps it where `pause` must do without -t.
READ_D=$READ_T

# now -> NOW: centiseconds of boot time. It counts suspend, and no clock setting moves it. The
# unit is that of start times in /proc/PID/stat (USER_HZ is 100 on every Linux ABI). A malformed
# file is a fatal arithmetic error, which ends in the EXIT trap, which kills.
now() {
    read -r now_u lib_x </proc/uptime
    NOW=$((${now_u%.*} * 100 + 1${now_u#*.} - 100))
}

# centis TEXT -> CENTIS, or false when TEXT is not a plain number of seconds below 10^8.
centis() {
    case $1 in '' | .* | *. | *[!0-9.]* | *.*.* | ?????????????*) return 1 ;; esac
    ce_i=${1%%.*} ce_f=00
    case $1 in *.*) ce_f=${1#*.}00 ;; esac
    case $ce_i in ?????????*) return 1 ;; esac
    while [ "${#ce_f}" -gt 2 ]; do ce_f=${ce_f%?}; done
    while [ "${ce_i#0}" != "$ce_i" ] && [ -n "${ce_i#?}" ]; do ce_i=${ce_i#0}; done
    CENTIS=$((ce_i * 100 + 1$ce_f - 100))
}

# token TEXT -> TOKEN: TEXT as one word of harmless characters, at most 64, "-" when empty.
token() {
    TOKEN='' tk_rest=$1
    while [ -n "$tk_rest" ] && [ "${#TOKEN}" -lt 64 ]; do
        tk_tail=${tk_rest#?}
        tk_c=${tk_rest%"$tk_tail"}
        case $tk_c in [A-Za-z0-9._:+/@-]) ;; *) tk_c=_ ;; esac
        TOKEN=$TOKEN$tk_c tk_rest=$tk_tail
    done
    [ -n "$TOKEN" ] || TOKEN=-
}

# run_id TEXT: is it a run's identity? It goes into paths and patterns.
run_id() {
    case $1 in '' | all | [!a-z0-9]* | *[!a-z0-9-]*) return 1 ;; esac
    [ "${#1}" -le 63 ]
}

# line FILE -> LINE: its first line; false when it cannot be read or is empty.
line() {
    LINE=''
    { IFS= read -r LINE <"$1"; } 2>/dev/null || [ -n "$LINE" ]
}

# put FILE TEXT: with builtins only; false when the kernel says no.
put() {
    { echo "$2" >"$1"; } 2>/dev/null
}

# pstat BASE -> P_COMM P_STATE P_PPID P_START. BASE is /proc/PID or /proc/PID/task/TID. A
# process chooses its own name: it may hold brackets, blanks and line ends.
pstat() {
    P_COMM='' P_STATE='' P_PPID='' P_START='' ps_all=''
    { while IFS= read -r ps_line; do ps_all="$ps_all $ps_line"; done <"$1/stat"; } 2>/dev/null
    case $ps_all in *\(*\)\ *) ;; *) return 1 ;; esac
    P_COMM=${ps_all#*\(}
    P_COMM=${P_COMM%\)*}
    # shellcheck disable=SC2086
    set -- ${ps_all##*\) }
    [ "$#" -ge 20 ] || return 1
    P_STATE=$1 P_PPID=$2 P_START=${20}
}

# pid_of BASE -> PID, which signals reach the whole process.
pid_of() {
    PID=${1#/proc/}
    PID=${PID%%/*}
}

# same BASE START: is it still that very process (or thread), and not gone or a zombie?
same() {
    pstat "$1" && [ "$P_START" = "$2" ] && case $P_STATE in Z | X | x) false ;; esac
}

# alive_guard FILE: does "PID START" in FILE name a living process? -> HOLDER (its pid)
alive_guard() {
    line "$1" || return 1
    HOLDER=${LINE%% *}
    case $HOLDER in '' | *[!0-9]*) return 1 ;; esac
    same "/proc/$HOLDER" "${LINE##* }"
}

# whoami -> ME, ME_START: this very process. $$ is the parent's in a background child.
whoami() {
    line /proc/self/stat
    ME=${LINE%% *}
    pstat "/proc/$ME"
    ME_START=$P_START
}

# room DIR: has the pids cgroup at DIR room for a few more tasks? Unreadable counts as room.
room() {
    line "$1/pids.max" || return 0
    ro_max=$LINE
    case $ro_max in '' | *[!0-9]*) return 0 ;; esac
    line "$1/pids.current" || return 0
    [ $((LINE + 3)) -le "$ro_max" ]
}

# can_fork: asked beforehand, because a failed fork ends dash and ash at once, and bash only after
# it has retried for fifteen seconds.
can_fork() {
    own_paths
    for cf_dir in ${PIDS_MNT:+"$PIDS_MNT$OWN_PIDS"} ${V2_MNT:+"$V2_MNT$OWN_V2"}; do
        while :; do
            room "$cf_dir" || return 1
            case $cf_dir in "$PIDS_MNT" | "$V2_MNT" | / | '' | "$PIDS_MNT/" | "$V2_MNT/") break ;; esac
            cf_dir=${cf_dir%/*}
        done
    done
    line /proc/loadavg || return 0
    # shellcheck disable=SC2086
    set -- $LINE
    cf_tasks=${4#*/}
    for cf_file in threads-max pid_max; do
        LINE=${TASKS_MAX:-}
        [ -n "$LINE" ] || line "/proc/sys/kernel/$cf_file" || continue
        # One digit, all that a byte-wise shell gets, is no limit that a running host could have.
        [ "${#LINE}" -le 1 ] || [ $((cf_tasks + 50)) -lt "$LINE" ] || return 1
    done
}

# tasks_max -> TASKS_MAX: how many tasks the whole host may have; empty: not known. A sysctl file
# answers only the first read, and shells that read byte by byte get one digit of it: hence the fork,
# while forks are free.
tasks_max() {
    TASKS_MAX=''
    for tm_file in threads-max pid_max; do
        tm_text=$(cat "/proc/sys/kernel/$tm_file" 2>/dev/null)
        case $tm_text in '' | *[!0-9]*) continue ;; esac
        [ -n "$TASKS_MAX" ] && [ "$TASKS_MAX" -le "$tm_text" ] || TASKS_MAX=$tm_text
    done
}

# pause SECONDS (as text): without a fork where read has -t. Descriptor 9 is a FIFO that nobody
# writes to. dash without the means to fork looks at the clock instead, for 0.1 s: for what ends
# within seconds only; loops without such an end ask `can_wait` first.
pause() {
    if [ "$READ_T" = yes ]; then
        # shellcheck disable=SC3045
        read -r -t "$1" lib_x <&9
    elif can_fork; then
        sleep "$1"
    else
        now
        pa_until=$((NOW + 10))
        while [ "$NOW" -lt "$pa_until" ]; do now; done
    fi
    return 0
}

# can_wait: would `pause` sleep rather than look at the clock?
can_wait() {
    [ "$READ_T" = yes ] || can_fork
}

# better_shell SCRIPT ARG...: where read has no -t, go on as a shell that has it. It takes the place
# of this one, so nothing is forked. Comes back when there is no such shell.
better_shell() {
    [ "$READ_T" = no ] && [ -r "$1" ] || return 0
    if command -v bash >/dev/null 2>&1; then exec bash "$@"; fi
    if command -v busybox >/dev/null 2>&1; then exec busybox ash "$@"; fi
}
