# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# The resident guard. Six processes watch each other, because each of them may hang:
#   main    reads events from a FIFO, answers the client, kills what is remembered; only builtins
#           after arming, so that neither a full process table nor a hung disk stops it
#   reader  turns the client's lines, and the end of its stream, into events
#   tickers two for main, each an event every second, half a second apart, and one for the worker:
#           nobody reads events with a time-out, because busybox drops the bytes of a line that the
#           time-out cuts, and that line could be the kill
#   worker  scans /proc, which may block for ever; kills by itself when main is gone or hangs

# say TEXT: one line to the client. A dead channel must not matter.
say() {
    echo "$1" 2>/dev/null
}

# watched PID: is our child alive? `kill -0` would say yes to a zombie, and dash reaps none while it
# runs builtins only; a recycled pid has another parent.
watched() {
    pstat "/proc/$1" && [ "$P_PPID" = "$MAIN" ] && case $P_STATE in Z | X | x) false ;; esac
}

reader() {
    trap - EXIT TERM
    exec >/dev/null
    write_only
    re_line=''
    while IFS= read -r re_line || [ -n "$re_line" ]; do
        [ "${#re_line}" -le 500 ] || re_line='0 too-long'
        printf 'c %s\n' "$re_line" >&8 || exit 1
        re_line=''
    done <&3
    echo e >&8
}

# ticker FIRST_S FD: events for main (FD 8) or for the worker (FD 7), never for both: a main that
# hangs lets its FIFO fill, and who blocks on that cannot wake the worker, whose kill it is then.
# A ticker's end trips. It says so itself where it can (dash ends when it cannot fork `sleep`), and
# at the other ticker's next event main sees that it is gone.
ticker() {
    exec 3<&- >/dev/null
    write_only
    trap 'echo t >&7; echo x >&8' EXIT
    ti_wait='sleep'
    [ "$READ_T" = no ] || ti_wait=pause
    "$ti_wait" "$1"
    while same "/proc/$MAIN" "$MAIN_START"; do
        echo t >&"$2"
        "$ti_wait" 1 || break
    done
}

start_worker() {
    worker &
    WORKER=$!
}

# order WHAT SEQ [ORDERED [ASKED]]: give the worker a job. QUEUE holds "ID:WHAT:SEQ:ORDERED:ASKED"
# in order.
order() {
    JOBS=$((JOBS + 1))
    QUEUE="$QUEUE $JOBS:$1:$2:${3:-$NOW}:${4:-$NOW}"
    echo "job $JOBS $1 ${3:-$NOW}" >&7
}

fields() {
    Q_ID=${1%%:*} fi_rest=${1#*:}
    Q_WHAT=${fi_rest%%:*} fi_rest=${fi_rest#*:}
    Q_SEQ=${fi_rest%%:*} fi_rest=${fi_rest#*:}
    Q_ORDERED=${fi_rest%%:*} Q_ASKED=${fi_rest#*:}
}

# answered ID: pass the worker's answer on. The worker may be jobs ahead: there are eight files in
# turn, each is read once, and what does not end in its own number does not count.
answered() {
    # shellcheck disable=SC2086
    set -- "$1" $QUEUE
    [ "$#" -ge 2 ] || return 0
    fields "$2"
    [ "$Q_ID" = "$1" ] || return 0
    shift 2
    QUEUE=$*
    an_state=UNVERIFIED an_text='' an_line=''
    { while IFS= read -r an_line && [ "$an_line" != "end $Q_ID" ]; do
        an_text="$an_text$an_line
"
    done <"$DIR/answer.$((Q_ID % 8))"; } 2>/dev/null
    if [ "$an_line" = "end $Q_ID" ]; then
        an_ifs=$IFS
        IFS='
'
        # shellcheck disable=SC2086
        set -- $an_text
        IFS=$an_ifs
        for an_line in "$@"; do
            case $an_line in
            survivor\ * | watch\ *) say "! ${an_line%% *} $Q_SEQ ${an_line#* }" ;;
            late\ n=0) ;;
            late\ *)
                put "$DIR/proof" LATE
                say "! $an_line"
                ;;
            proof\ *)
                an_state=${an_line#*state=}
                an_state=${an_state%% *}
                say "! proof $Q_SEQ ${an_line#* }"
                ;;
            esac
        done
        known_read
    else
        no_answer answer-cut
    fi
    [ "$Q_WHAT" != kill ] || again "$an_state"
    # The next in line was waiting for this one.
    # shellcheck disable=SC2086
    set -- $QUEUE
    [ "$#" -eq 0 ] || { fields "$1" && shift && QUEUE="$Q_ID:$Q_WHAT:$Q_SEQ:$Q_ORDERED:$NOW $*"; }
}

# no_answer WHY: what is not known is said to be not known.
no_answer() {
    case $Q_WHAT in
    watch) say "! watch $Q_SEQ processes=- cgroups=- comms=-" ;;
    prove | kill)
        say "! proof $Q_SEQ state=UNVERIFIED stopped=0 scans=0 took_ms=$(((NOW - Q_ORDERED) * 10)) detail=$1"
        ;;
    esac
}

# again STATE: the last word on the run stays on the host; reports at 1 s and 5 s after the order, as
# long as it was no proof.
again() {
    put "$DIR/proof" "$1"
    REPORT_AT='' REPORT_SEQ=$Q_SEQ REPORT_ORDERED=$Q_ORDERED
    case $1 in CLEAN | STOPPED) return 0 ;; esac
    if [ $((NOW - Q_ORDERED)) -lt 100 ]; then
        REPORT_AT=$((Q_ORDERED + 100))
    elif [ $((NOW - Q_ORDERED)) -lt 500 ]; then
        REPORT_AT=$((Q_ORDERED + 500))
    fi
}

# overdue: no scan answer within 2 s. The stuck worker is left behind (SIGKILL reaches it when the
# kernel lets it go) and a new one takes over, if the host can still fork. What was ordered less
# than 2 s ago only waited behind it: that goes to the new worker, and keeps its own time.
overdue() {
    # shellcheck disable=SC2086
    set -- $QUEUE
    [ "$#" -gt 0 ] || return 0
    fields "$1"
    [ $((NOW - Q_ASKED)) -ge 200 ] || return 0
    QUEUE='' WORKER_FLOOR=$JOBS
    watched "$WORKER" && { kill -9 "$WORKER"; } 2>/dev/null
    WORKER=0
    if can_fork; then start_worker; fi
    for ov_entry in "$@"; do
        fields "$ov_entry"
        if [ $((NOW - Q_ASKED)) -lt 200 ]; then
            order "$Q_WHAT" "$Q_SEQ" "$Q_ORDERED" "$Q_ASKED"
        else
            no_answer no-scan-answer
            [ "$Q_WHAT" != kill ] || again UNVERIFIED
        fi
    done
}

# tombstone REASON: nothing of this run starts, arms or beats here again.
tombstone() {
    [ -e "$DIR/tombstone" ] || put "$DIR/tombstone" "$1"
}

# execute SEQ REASON: the kill order. What is remembered dies before anything else is done.
execute() {
    now
    ex_from=$NOW
    KILLED='' QUICK=yes
    kill_known
    QUICK=no
    tombstone "$2"
    [ -n "$TRIPPED" ] || TRIPPED=$2
    put "$DIR/proof" ''
    put "$DIR/killed" "$KILLED"
    order kill "$1" "$ex_from"
    NEXT_LATE=$((NOW + 500))
}

# trip REASON: the guard's own decision. The kill goes first, then the word.
trip() {
    [ -z "$TRIPPED" ] || return 0
    TRIPPED=$1
    execute 0 "$1"
    say "! tripped $1"
}

# watch_over: everything that can be due at a wake-up, before any line is looked at: a beat that
# comes after its time does not undo the trip.
watch_over() {
    now
    put "$DIR/pulse" "$NOW ."
    overdue
    if [ "$WORKER" = 0 ] && can_fork; then start_worker; fi
    if [ -z "$TRIPPED" ]; then
        if [ "$NOW" -ge "$DEADLINE" ]; then
            trip deadline
        elif [ -e "$DIR/tombstone" ]; then
            trip tombstone
        elif [ $((NOW - BEAT_AT)) -gt "$BEAT" ]; then
            trip beat
        elif ! { watched "$TICKER_A" && watched "$TICKER_B" && watched "$TICKER_C"; }; then
            trip watcher
        elif ! watched "$READER" && [ "$EVENT" != e ]; then
            # Perhaps its last word still waits in the FIFO: the end of the stream, most likely.
            READER_GONE=$((READER_GONE + 1))
            [ "$READER_GONE" -lt 3 ] || trip eof
        elif [ "$WORKER" != 0 ] && ! watched "$WORKER"; then
            WORKER=0
            trip watcher
        fi
        return 0
    fi
    [ "$WORKER" = 0 ] || watched "$WORKER" || WORKER=0
    if [ -n "$REPORT_AT" ] && [ "$NOW" -ge "$REPORT_AT" ]; then
        REPORT_AT=''
        order kill "$REPORT_SEQ" "$REPORT_ORDERED"
    fi
    if [ "$NOW" -ge "$NEXT_LATE" ] && [ "$NOW" -lt "$DEADLINE" ] && [ -z "$QUEUE" ]; then
        NEXT_LATE=$((NOW + 500))
        order late 0
    fi
}

beat() {
    if [ -n "$TRIPPED" ]; then
        say "$1 err beat tripped $TRIPPED"
    else
        BEAT_AT=$NOW
        say "$1 ok beat"
    fi
}

end_children() {
    for en_pid in "$READER" "$TICKER_A" "$TICKER_B" "$TICKER_C" "$WORKER"; do
        watched "$en_pid" && { kill -9 "$en_pid"; } 2>/dev/null
    done
}

quit() {
    say "$1 ok quit"
    trap - EXIT
    end_children
    clear_up
    exit 0
}

# command LINE: one line of the client, while armed.
command_line() {
    # shellcheck disable=SC2086
    set -- $1
    case ${1:-x} in *[!0-9]*) return 0 ;; esac
    case ${2:-} in
    beat) beat "$1" ;;
    sample) sample "$1" ;;
    watch) say "$1 ok watch" && order watch "$1" ;;
    prove) say "$1 ok prove" && order prove "$1" ;;
    kill)
        say "$1 ok kill"
        token "${3:-unknown}"
        REPORT_AT=''
        execute "$1" "$TOKEN"
        ;;
    quit) quit "$1" ;;
    arm) say "$1 err arm armed" ;;
    *)
        token "${2:-}"
        say "$1 err $TOKEN usage"
        ;;
    esac
}

# gone: the channel is no more. Kill, and look for late-comers until the deadline, without it.
gone() {
    GONE=yes
    exec 3<&- >/dev/null
    trip eof
}

# last_word: the shell ends without having been told to: a fork that failed, an error in here.
last_word() {
    trap '' EXIT HUP PIPE INT TERM
    unfreeze
    QUICK=yes KILLED=''
    kill_known
    tombstone guard-exit
    put "$DIR/proof" ''
    say "! tripped guard-exit"
    say "! proof 0 state=UNVERIFIED stopped=0 scans=0 took_ms=0 detail=guard-exit"
}

guard_loop() {
    while :; do
        IFS= read -r EVENT <&8
        watch_over
        case $EVENT in
        c\ *) command_line "${EVENT#c }" ;;
        r\ *) answered "${EVENT#r }" ;;
        x*) trip watcher ;;
        e*) gone ;;
        esac
        if [ "$GONE" = yes ] && [ "$NOW" -ge "$DEADLINE" ] && [ -z "$QUEUE$REPORT_AT" ]; then
            trap - EXIT
            end_children
            clear_up
            exit 0
        fi
    done
}

guard_main() {
    exec 3<&0 </dev/null
    trap '' HUP PIPE INT
    await_arm
    exec 2>/dev/null
    trap last_word EXIT
    trap 'exit 1' TERM
    MAIN=$ME MAIN_START=$ME_START
    start_worker
    ticker 0.5 8 &
    TICKER_A=$!
    ticker 1 8 &
    TICKER_B=$!
    ticker 1 7 &
    TICKER_C=$!
    reader &
    READER=$!
    exec 3<&-
    # Not before: who is told "armed" may count on all of them.
    say "$ARM_SEQ ok arm $FACTS"
    guard_loop
}
