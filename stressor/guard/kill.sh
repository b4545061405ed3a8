# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# The one-shot kill: RUN|all REASON LEFT_S. Used cold by abort, by the host timer, and from
# /run/stressor/<run>/kill.sh by somebody at the console: sh /run/stressor/<run>/kill.sh

# pass SEQ WHAT: the child's answer, as the protocol has it. -> PROOF, the last state
pass_on() {
    PROOF=''
    { while IFS= read -r po_line; do
        case $po_line in
        survivor\ *) echo "! survivor 0 ${po_line#* }" ;;
        proof\ *)
            echo "! proof 0 ${po_line#* }"
            PROOF=${po_line#*state=}
            PROOF=${PROOF%% *}
            ;;
        esac
    done <"$ANSWER"; } 2>/dev/null
}

# finished: has the child written its last line?
finished() {
    { while IFS= read -r fd_line; do [ "$fd_line" = end ] && return 0; done <"$ANSWER"; } 2>/dev/null
    return 1
}

unverified() {
    now
    PROOF=UNVERIFIED
    echo "! proof 0 state=UNVERIFIED stopped=0 scans=0 took_ms=$(((NOW - ORDERED) * 10)) detail=$1"
}

# attempt: one kill and proof in a child that may hang, for at most 2 s. Without a file for the
# answer nothing is proven, but the kill is done.
attempt() {
    now
    at_until=$((NOW + 200)) at_out=$ANSWER at_why=no-scan-answer
    put "$ANSWER" '' || at_out=/dev/null at_why=no-folder
    if ! can_fork; then
        { job kill "$ORDERED" >"$at_out"; } 2>/dev/null
        pass_on
        [ -n "$PROOF" ] || unverified no-folder
        return 0
    fi
    (
        trap unfreeze EXIT
        whoami
        job kill "$ORDERED" >"$at_out"
        put "$ANSWER.killed" "$KILLED"
    ) </dev/null >/dev/null 2>&1 &
    at_child=$!
    while now && [ "$NOW" -lt "$at_until" ]; do
        if finished; then
            pass_on
            line "$ANSWER.killed" && KILLED=$LINE
            [ -n "$PROOF" ] || unverified answer-cut
            return 0
        fi
        pause 0.05
    done
    # Where no answer can be written, nobody waits for it: the kill may take its time.
    [ "$at_out" = /dev/null ] || { kill -9 "$at_child"; } 2>/dev/null
    unverified "$at_why"
}

# reports: now, and while there is no proof again at 1 s and at 5 s.
reports() {
    attempt
    for rp_at in 100 500; do
        case $PROOF in CLEAN | STOPPED) return 0 ;; esac
        now
        [ "$NOW" -lt $((ORDERED + rp_at)) ] || continue
        while [ "$NOW" -lt $((ORDERED + rp_at)) ]; do
            pause 0.2
            now
        done
        attempt
    done
}

# claim_late: there is one late loop a run. Of two that claim at the same moment the later stays.
claim_late() {
    alive_guard "$DIR/late.pid" && [ "$HOLDER" != "$ME" ] && return 1
    put "$DIR/late.pid" "$ME $ME_START"
    pause 0.2
    line "$DIR/late.pid" && [ "$LINE" = "$ME $ME_START" ]
}

# late_loop: what turns up later dies too: every 5 s until the deadline. A scan that is slow, as it
# is without a fork, makes the loop rarer: at most a fifth of a core, and no wait above 20 s. Where
# the host lets us neither wait nor fork the loop ends: it would only burn what is left.
late_loop() {
    trap '' HUP PIPE
    claim_late || exit 0
    now
    ll_until=$((NOW + LEFT)) ll_wait=5
    while [ "$NOW" -lt "$ll_until" ]; do
        can_wait || exit 4
        pause "$ll_wait"
        now
        ll_from=$NOW KILLED=''
        job late "$NOW" >/dev/null 2>&1
        [ -z "$KILLED" ] || record LATE
        now
        ll_wait=$(((NOW - ll_from) * 4 / 100))
        [ "$ll_wait" -ge 5 ] || ll_wait=5
        [ "$ll_wait" -le 20 ] || ll_wait=20
    done
    exit 0
}

# leave_late_loop: in a session of its own, with nothing of the caller's open, so that ssh returns.
leave_late_loop() {
    [ "$LEFT" -gt 0 ] && can_fork || return 0
    alive_guard "$DIR/late.pid" && return 0
    ll_seconds=$(((LEFT + 99) / 100))
    if command -v systemd-run >/dev/null 2>&1 && $LIMIT systemd-run --collect \
        --unit="stressor-late-$RUN" /bin/sh "$DIR/kill.sh" --late "$RUN" "$ll_seconds" \
        </dev/null >/dev/null 2>&1; then
        return 0
    fi
    if command -v setsid >/dev/null 2>&1; then
        setsid /bin/sh "$DIR/kill.sh" --late "$RUN" "$ll_seconds" \
            </dev/null >/dev/null 2>&1 7>&- 8>&- 9>&- &
    else
        (whoami && late_loop) </dev/null >/dev/null 2>&1 &
    fi
    return 0
}

# kill_words: the forms that fit the console too: without words it is this folder's run. --killed
# says what the shell before this one has killed and that it said hello.
kill_words() {
    LATE=no AGAIN=no
    if [ "${1:-}" = --killed ]; then
        AGAIN=yes KILLED=${2:-}
        case $KILLED in *[!0-9\ ]*) return 1 ;; esac
        shift 2
    fi
    if [ "${1:-}" = --late ]; then
        LATE=yes
        set -- "${2:-}" late "${3:-}"
    fi
    if [ "$#" -eq 0 ]; then
        kw_dir=${0%/*}
        set -- "${kw_dir##*/}" console 0
    fi
    RUN=${1:-} LEFT=0
    token "${2:-console}"
    REASON=$TOKEN
    LEFT_S=${3:-0}
    { [ "$RUN" = all ] || run_id "$RUN"; } && centis "$LEFT_S" && LEFT=$CENTIS
}

# kill_folder: state under /run; without it the kill goes on, and only the proof suffers. Where
# nothing can be forked, arming has left all that is needed.
kill_folder() {
    DIR=$BASE/$RUN ANSWER=$BASE/$RUN/cold.$ME ARMED=0
    if can_fork; then
        { mkdir -p "$DIR" && canary; } 2>/dev/null
        { [ -e "$DIR/cold" ] || mkfifo "$DIR/cold"; } 2>/dev/null
    fi
    if [ -p "$DIR/cold" ]; then exec 9<>"$DIR/cold"; else READ_T=no; fi
    if line "$DIR/armed"; then
        case $LINE in '' | *[!0-9]*) ;; *) ARMED=$LINE ;; esac
    fi
    known_read
    [ -z "$STRESSOR_TEXT" ] || [ -e "$DIR/kill.sh" ] ||
        { printf '%s\n' "$STRESSOR_TEXT" >"$DIR/kill.sh"; } 2>/dev/null
}

kill_last_word() {
    unfreeze
    [ -n "$PROOF" ] || unverified kill-exit
    exit 4
}

kill_main() {
    trap '' HUP PIPE
    KNOWN='' KILLED='' REPS='' FROZEN='' FROZEN_V2='' PROOF='' LIMIT='' DIR='' LEFT=0
    kill_words "$@" || {
        echo "usage: kill.sh RUN|all [REASON [LEFT_S]]" >&2
        exit 2
    }
    [ "$LATE" = no ] || better_shell "$0" "$@"
    whoami
    mounts
    host_ns || :
    now
    ORDERED=$NOW
    [ $LATE$AGAIN != nono ] || echo "! hello kill $RUN boot=${now_u%% *}"
    trap kill_last_word EXIT
    # What earlier scans remembered dies before anything may fork or touch a disk.
    DIR=$BASE/$RUN
    known_read
    QUICK=yes
    [ $LATE = yes ] || kill_known
    QUICK=no
    # From a file (host timer, console) it was whatever sh is. Only now, because this reads the disk.
    # An argument holds 128 KiB.
    [ -n "$STRESSOR_TEXT" ] || [ $LATE = yes ] || [ "${#KILLED}" -gt 100000 ] ||
        better_shell "$0" --killed "$KILLED" "$RUN" "$REASON" "$LEFT_S"
    if can_fork; then limit; fi
    kill_folder
    if [ $LATE = yes ]; then
        trap unfreeze EXIT
        late_loop
    fi
    put "$DIR/tombstone" "$REASON"
    [ "$RUN" != all ] || bury_all
    record ''
    reports
    record "$PROOF"
    leave_late_loop
    trap - EXIT
    if can_fork; then { rm -f -- "$ANSWER" "$ANSWER.killed"; } 2>/dev/null; fi
    case $PROOF in CLEAN | STOPPED) exit 0 ;; esac
    exit 4
}

# record STATE: the last word on every run that this kill is for, for whoever asks later whether it is
# over. A tombstone is written before the kill and proves nothing.
record() {
    put "$DIR/proof" "$1"
    [ "$RUN" = all ] || return 0
    set +f
    for rc_file in "$BASE"/*/tombstone; do
        [ -e "$rc_file" ] && put "${rc_file%/*}/proof" "$1"
    done
    set -f
}

# bury_all: every run that was armed here is over.
bury_all() {
    set +f
    for bu_file in "$BASE"/*/guard.pid; do
        [ -e "$bu_file" ] && put "${bu_file%/*}/tombstone" "$REASON"
    done
    set -f
}
