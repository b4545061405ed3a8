# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# shellcheck disable=SC2015,SC2094 # "A and B, else C" is meant; the files are the kernel's
# Arming: before it nothing is promised, after it everything that the kill needs is in memory or
# under /run. Here, and only here, forks and the disk may be used freely.

# clear_up: stop the host timer and leave nothing, except a tombstone and what goes with it.
clear_up() {
    if [ "$TIMER" = ok ] && can_fork; then
        # shellcheck disable=SC2086
        $LIMIT systemctl stop "stressor-$RUN.timer" >/dev/null 2>&1
    fi
    if [ -e "$DIR/tombstone" ] || ! can_fork; then
        put "$DIR/guard.pid" ''
    else
        rm -rf -- "$DIR"
    fi
}

# held: does a living guard of another run, or of this one, own the host? -> OTHER, its run and who
# started it. Each claims first and looks then, so that of two at the same moment both refuse rather
# than none.
held() {
    OTHER=''
    set +f
    for he_file in "$BASE"/*/guard.pid "$BASE"/*/claim.*; do
        [ "$he_file" != "$DIR/claim.$ME" ] && alive_guard "$he_file" || continue
        OTHER=${he_file%/*}
        line "$OTHER/holder" || LINE=-
        token "$LINE"
        OTHER="${OTHER##*/} $TOKEN"
        set -f
        return 0
    done
    set -f
    return 1
}

# limit -> LIMIT, which bounds whatever is forked, and TASKS_MAX. Forks.
limit() {
    LIMIT=''
    tasks_max
    if command -v timeout >/dev/null 2>&1 && timeout -s KILL 3 true 2>/dev/null; then
        LIMIT='timeout -s KILL 3'
    fi
}

# host_timer: PID 1 runs the same kill at the same moment, whatever became of us. /run is often
# mounted noexec, hence sh.
host_timer() {
    TIMER=missing
    command -v systemd-run >/dev/null 2>&1 || return 0
    # shellcheck disable=SC2086
    $LIMIT systemctl stop "stressor-$RUN.timer" "stressor-$RUN.service" >/dev/null 2>&1
    # shellcheck disable=SC2086
    $LIMIT systemctl reset-failed "stressor-$RUN.timer" "stressor-$RUN.service" >/dev/null 2>&1
    # shellcheck disable=SC2086
    $LIMIT systemd-run --collect --unit="stressor-$RUN" --on-active="$(((LEFT + 99) / 100))s" \
        --timer-property=AccuracySec=100ms /bin/sh "$DIR/kill.sh" "$RUN" deadline 0 \
        >/dev/null 2>&1 </dev/null && TIMER=ok
    return 0
}

# self_protection: the OOM killer shall choose the load.
self_protection() {
    OOM=refused
    put "/proc/$ME/oom_score_adj" -1000 && OOM=ok
    return 0
}

facts() {
    FACTS=cgroup=v1
    [ -n "$FREEZER_MNT" ] || FACTS=cgroup=v2
    if [ -n "$FREEZER_MNT" ]; then
        FACTS="$FACTS kill=freezer"
    elif [ -n "$V2_MNT" ]; then
        fa_kill=freezer
        set +f
        for fa_file in "$V2_MNT"/*/cgroup.kill; do [ -e "$fa_file" ] && fa_kill=cgroup.kill; done
        set -f
        FACTS="$FACTS kill=$fa_kill"
    else
        FACTS="$FACTS kill=process"
    fi
    fa_dead=read-t
    [ "$READ_T" = yes ] || fa_dead=watcher
    line /proc/uptime
    FACTS="$FACTS shell=$STRESSOR_SHELL deadman=$fa_dead timer=$TIMER oom=$OOM boot=${LINE%% *}"
}

refuse() {
    say "$1 err arm $2"
    { rm -f -- "$DIR/claim.$ME" && rmdir -- "$DIR"; } 2>/dev/null
    return 1
}

# prepare: the run's folder, with the files that the kill needs.
prepare() {
    printf '%s\n' "$STRESSOR_TEXT" >"$DIR/kill.sh" && chmod 700 "$DIR/kill.sh" || return 1
    [ -e "$DIR/armed" ] || put "$DIR/armed" "$NOW" || return 1
    line "$DIR/armed"
    case $LINE in '' | *[!0-9]*) LINE=0 ;; esac
    ARMED=$LINE
    canary || return 1
    rm -f -- "$DIR/events" "$DIR/jobs" "$DIR/idle" "$DIR/killed" "$DIR/proof"
    set +f
    rm -f -- "$DIR"/answer.[0-7]
    set -f
    mkfifo "$DIR/events" "$DIR/jobs" "$DIR/idle" || return 1
    # For a one-shot kill that can fork nothing.
    [ -p "$DIR/cold" ] || mkfifo "$DIR/cold" || return 1
    put "$DIR/pulse" "$NOW ." && put "$DIR/deadline" "$DEADLINE" && put "$DIR/holder" "$WHO" &&
        put "$DIR/guard.pid" "$ME $ME_START"
}

# arm SEQ RUN LEFT_S BEAT_S [WHO] -> ARM_SEQ FACTS, for the answer that is given when all processes
# run; false, with the reason said, when the host is not ours to guard.
arm() {
    token "${5:-}"
    WHO=$TOKEN
    { [ "$#" -eq 4 ] || [ "$#" -eq 5 ]; } && run_id "$2" && centis "$3" && LEFT=$CENTIS && centis "$4" && BEAT=$CENTIS &&
        [ "$LEFT" -gt 0 ] && [ "$BEAT" -gt 0 ] || { say "$1 err arm usage"; return 1; }
    [ -r /proc/1/environ ] && host_ns || { say "$1 err arm not-root"; return 1; }
    RUN=$2 DIR=$BASE/$2
    now
    DEADLINE=$((NOW + LEFT)) BEAT_AT=$NOW
    [ ! -e "$DIR/tombstone" ] || { say "$1 err arm tombstone"; return 1; }
    # shellcheck disable=SC3067
    { mkdir -p "$DIR" && [ ! -L "$BASE" ] && [ ! -L "$DIR" ] && [ -O "$BASE" ]; } 2>/dev/null ||
        { say "$1 err arm no-folder"; return 1; }
    put "$DIR/claim.$ME" "$ME $ME_START" || { refuse "$1" no-folder || return 1; }
    if held; then refuse "$1" "held $OTHER" || return 1; fi
    prepare || { refuse "$1" no-folder || return 1; }
    rm -f -- "$DIR/claim.$ME"
    [ ! -e "$DIR/tombstone" ] || { put "$DIR/guard.pid" '' && refuse "$1" tombstone || return 1; }
    self_protection
    host_timer
    exec 7<>"$DIR/jobs" 8<>"$DIR/events" 9<>"$DIR/idle"
    known_read
    now
    BEAT_AT=$NOW
    facts
    ARM_SEQ=$1
}

# await_arm: until armed there is nothing to guard; an end of the stream ends the process.
await_arm() {
    whoami
    mounts
    limit
    now
    KNOWN='' KILLED='' REPS='' TRIPPED='' QUEUE='' JOBS=0 WORKER_FLOOR=0 REPORT_AT='' NEXT_LATE=0
    FROZEN='' FROZEN_V2='' GONE=no READER_GONE=0 TIMER=missing EVENT='' ARMED=0
    while IFS= read -r aw_line <&3; do
        # shellcheck disable=SC2086
        set -- $aw_line
        case ${1:-x} in *[!0-9]*) continue ;; esac
        case ${2:-} in
        arm)
            aw_seq=$1
            shift 2
            arm "$aw_seq" "$@" && return 0
            ;;
        quit)
            say "$1 ok quit"
            exit 0
            ;;
        *)
            token "${2:-}"
            say "$1 err $TOKEN not-armed"
            ;;
        esac
    done
    exit 0
}
