# shellcheck shell=sh
# shellcheck disable=SC2016,SC2034,SC2329 # quoted text for other shells; some hosts need no sudo
# Stops all load of stressor on the hosts below, over SSH, and proves it: for a machine that has sh
# and OpenSSH, and neither Python nor the lifeline file. It asks no API, no DNS and nobody; it may be
# repeated at any time, and starts nothing. It holds addresses, users, key paths and host keys of
# when it was written, and no secret: the keys themselves must be where they were.
#
#   sh abort-CLUSTER.sh [RUN] [SECONDS]
#
# RUN: only this run's load; without it, that of all runs. SECONDS: for how long late-comers of RUN
# are killed afterwards (default 600; for all runs 0, or the next run would be killed as well).
# Exit 0: every host proven clean; 4: some host is not.
set -u
unset ENV BASH_ENV CDPATH TMOUT
umask 077
LC_ALL=C
export LC_ALL
run=${1:-all} late=${2:-}
if [ "$run" = all ]; then late=${late:-0}; else late=${late:-600}; fi
case $run in '' | *[!a-z0-9-]*) echo "usage: sh $0 [RUN] [SECONDS]" >&2; exit 2 ;; esac
case $late in '' | *[!0-9]*) echo "usage: sh $0 [RUN] [SECONDS]" >&2; exit 2 ;; esac
work=$(mktemp -d "${TMPDIR:-/tmp}/stressor-abort.XXXXXX") ||
    work=$(mktemp -d /dev/shm/stressor-abort.XXXXXX) || exit 4
# Only what this process made is removed, by the name that mktemp gave.
trap 'rm -rf -- "$work"' EXIT
trap '' HUP
limit_s=20 return=$(printf '\r')

# limited COMMAND...: ends it with SIGKILL after limit_s, also where there is no timeout(1).
limited() {
    "$@" &
    li_child=$!
    (
        sleep "$limit_s" &
        li_sleep=$!
        trap 'kill "$li_sleep" 2>/dev/null; exit 0' TERM
        wait "$li_sleep"
        kill -9 "$li_child"
    ) >/dev/null 2>&1 </dev/null &
    li_dog=$!
    wait "$li_child"
    li_code=$?
    kill "$li_dog" 2>/dev/null
    return $li_code
}

# say HOST STATE DETAIL: one line, of at most 64 columns unless the name is long.
say() {
    printf '  %-14s %-12s %.34s\n' "$1" "$2" "$3"
}

# answer OUTPUT -> STATE STOPPED, from the last proof line; empty where there is none. Nothing but
# the host's own proof counts: not an exit code, not silence. Good news beside survivors is no proof.
answer() {
    STATE='' STOPPED='' an_survivors=0
    while read -r an_bang an_word an_sequence an_rest; do
        case "$an_bang $an_word" in
        '! proof') ;;
        '! survivor') an_survivors=$((an_survivors + 1)) && continue ;;
        *) continue ;;
        esac
        case $an_sequence in *[!0-9]*) continue ;; esac
        case $an_rest in 'state='[A-Z]*' stopped='[0-9]*' '*) ;; *) continue ;; esac
        STATE=${an_rest#state=}
        STATE=${STATE%% *}
        STOPPED=${an_rest#*stopped=}
        STOPPED=${STOPPED%% *}
        case $STATE,$an_survivors in
        CLEAN,0 | STOPPED,0 | SURVIVORS,* | UNVERIFIED,*) ;;
        CLEAN,* | STOPPED,*) STATE=UNVERIFIED ;;
        *) STATE='' ;;
        esac
        an_survivors=0
    done <"$1"
}

# way NUMBER CONFIG KNOWN_HOSTS PREFIX: one route of host NUMBER. True when the host has answered.
way() {
    wa_at="$work/$1"
    printf '%s\n' "$2" "  UserKnownHostsFile \"$wa_at.known\"" >"$wa_at.config" &&
        printf '%s\n' "$3" >"$wa_at.known" || return 1
    limited ssh -F "$wa_at.config" -o ConnectTimeout=8 stressor-target \
        "$4 $run script $late" >"$wa_at.out" 2>"$wa_at.log" </dev/null
    silent $?
    answer "$wa_at.out"
    [ -n "$STATE" ]
}

# silent CODE -> SILENT, why a host that was reached, or may have been, gave no proof. 255 is ssh's
# own: it was not reached on this route.
silent() {
    case $1 in
    255) ;;
    137) SILENT="no proof; killed, or after $limit_s s" ;;
    *) SILENT="no proof, exit $1" ;;
    esac
}

# here NUMBER PREFIX: this very machine.
here() {
    limited sh -c "$2 $run script $late" >"$work/$1.out" 2>"$work/$1.log" </dev/null
    silent $?
    answer "$work/$1.out"
}

# why LOG -> WHY, its last line. It may be a stranger's: no control character reaches the screen.
why() {
    WHY=''
    while IFS= read -r wh_line; do [ -z "$wh_line" ] || WHY=$wh_line; done <"$1"
    WHY=${WHY%"$return"}
    case $WHY in *[!\ -~]*) WHY=$(printf '%s' "$WHY" | tr -c ' -~' '?') ;; esac
}

# told NUMBER NAME: what is known of a host, to the screen and for the verdict.
told() {
    case $STATE in
    CLEAN) say "$2" "$STATE" 'no load found' ;;
    STOPPED) say "$2" "$STATE" "$STOPPED processes killed" ;;
    '')
        if [ -n "$SILENT" ]; then
            STATE=UNVERIFIED
            say "$2" "$STATE" "$SILENT"
        else
            STATE=UNREACHABLE
            why "$work/$1.log"
            say "$2" "$STATE" "${WHY##*: }"
        fi
        ;;
    *) say "$2" "$STATE" 'look at it: load may live there' ;;
    esac
    printf '%s\n' "$STATE" >"$work/$1.state"
}

# verdict COUNT
verdict() {
    ve_at=0 ve_bad=0
    while [ "$ve_at" -lt "$1" ]; do
        ve_at=$((ve_at + 1)) ve_state=''
        { read -r ve_state <"$work/$ve_at.state"; } 2>/dev/null
        case $ve_state in CLEAN | STOPPED) ;; *) ve_bad=$((ve_bad + 1)) ;; esac
    done
    if [ "$1" -eq 0 ]; then
        echo 'NOTHING  no host is named here: nothing is known'
        exit 4
    fi
    if [ "$ve_bad" -gt 0 ]; then
        echo "NOT PROVEN  $ve_bad of $1 hosts; repeat, or go to their consoles:"
        echo "            sh /run/stressor/RUN/kill.sh RUN console 0"
        exit 4
    fi
    echo "STOPPED  all $1 hosts proven clean"
    exit 0
}
