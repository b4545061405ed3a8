# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# The resident guard's worker: whatever may block, and the kill in main's place.

# write_only: from now on hold the events' FIFO for writing only. Main alone reads it: when main is
# gone, whoever waits for room in there gets EPIPE and is free.
write_only() {
    exec 8>/proc/self/fd/8
}

# tell ID: main's event for an answer. A main that hangs may have let its FIFO fill: a child writes,
# so that nobody waits but the child. There is one at a time; the next one says again what the last
# had not said, and main ignores what it hears twice.
tell() {
    if telling; then
        { kill -9 "$wo_teller"; } 2>/dev/null
        wo_untold="$wo_untold $1"
    else
        # It is over: this does not wait, it frees the shell's memory of it.
        [ -z "$wo_teller" ] || wait "$wo_teller"
        wo_untold=$1
    fi
    wo_teller=''
    if can_fork; then
        { trap - EXIT && tell_all; } &
        wo_teller=$!
    else
        tell_all
    fi
}

tell_all() {
    for te_id in $wo_untold; do echo "r $te_id" >&8; done
}

# telling: is the child still at it?
telling() {
    [ -n "$wo_teller" ] && pstat "/proc/$wo_teller" && [ "$P_PPID" = "$ME" ] &&
        case $P_STATE in Z | X | x) false ;; esac
}

worker_end() {
    unfreeze
    telling && { kill -9 "$wo_teller"; } 2>/dev/null
}

# The worker: jobs from its FIFO; answers into the run's folder, then an event for main.
worker() {
    exec 3<&- >/dev/null
    write_only
    wo_teller=''
    trap worker_end EXIT
    whoami
    known_read
    wo_alone=no
    while :; do
        wo_line=''
        # Alone it waits for nobody's word: the tickers end with main.
        if [ "$wo_alone" = yes ]; then alone; else read -r wo_line <&7; fi
        case $wo_line in
        job\ *)
            # shellcheck disable=SC2086
            set -- $wo_line
            [ "$2" -gt "$WORKER_FLOOR" ] || continue
            KILLED=''
            [ "$3" = kill ] && line "$DIR/killed" && KILLED=$LINE
            { job "$3" "$4" "$2" >"$DIR/answer.$(($2 % 8))"; } 2>/dev/null
            [ "$3" != kill ] || put "$DIR/killed" "$KILLED"
            tell "$2"
            ;;
        esac
        worker_watch
    done
}

# alone: wait a moment. A shell that cannot even do that hands over to the late loop of kill.sh, in
# a shell that can, and ends where there is none: it never spins.
alone() {
    if can_wait; then
        pause 0.5
        return 0
    fi
    now
    [ "$NOW" -ge "$DEADLINE" ] ||
        better_shell "$DIR/kill.sh" --late "$RUN" "$(((DEADLINE - NOW + 99) / 100))"
    exit 4
}

# pulse -> LINE: when main was last awake. A reader that meets the writer half-way sees the beginning
# of a number, which would look like an old pulse: without its full stop it counts as one of now.
pulse() {
    line "$DIR/pulse"
    case $LINE in *[0-9]\ .) LINE=${LINE% .} ;; *) LINE=$NOW ;; esac
    case $LINE in *[!0-9]*) LINE=$NOW ;; esac
}

# worker_watch: is main there, and awake? A main that hangs (a channel that takes no more bytes, a
# SIGSTOP) can neither see its deadline nor a tombstone.
worker_watch() {
    now
    if [ "$wo_alone" = no ]; then
        pulse
        same "/proc/$MAIN" "$MAIN_START" && [ $((NOW - LINE)) -lt 500 ] && return 0
        wo_alone=yes wo_next=0
        put "$DIR/tombstone" watcher
        put "$DIR/proof" ''
    fi
    # Until the deadline, as main would; a main that comes back finds the tombstone.
    if [ "$NOW" -ge "$wo_next" ]; then
        KILLED=''
        job kill "$NOW" >/dev/null 2>&1
        now
        wo_next=$((NOW + 500))
    fi
    same "/proc/$MAIN" "$MAIN_START" || { [ "$NOW" -lt "$DEADLINE" ] || exit 0; }
    same "/proc/$MAIN" "$MAIN_START" && pulse && [ $((NOW - LINE)) -lt 200 ] && wo_alone=no
    return 0
}
