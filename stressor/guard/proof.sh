# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# shellcheck disable=SC2015,SC2094 # "A and B, else C" is meant; the files are the kernel's
# What a scan leads to: the kill order, the watch report, the proof of death. Runs in a child of
# whoever talks to the outside, because a scan may block for ever.

# known_read: KNOWN ("KIND:DIR:BASE:START" each) from the run's folder, where scans note the cgroups
# that held load and were its alone, each with a marked process of its time.
known_read() {
    KNOWN=''
    { while read -r kr_entry; do
        case $kr_entry in v[12]:/*:/proc/*:*[0-9]) KNOWN="$KNOWN $kr_entry" ;; esac
    done <"$DIR/known"; } 2>/dev/null
    return 0
}

known_write() {
    { for kw_entry in $KNOWN; do printf '%s\n' "$kw_entry"; done >"$DIR/known"; } 2>/dev/null
}

# learn: remember the cgroups of MARKED. -> CGROUPS, how many hold load now.
learn() {
    CGROUPS=0 le_seen=' '
    for le_entry in $MARKED; do
        cgroup_of "${le_entry%:*}" || continue
        case $le_seen in *" $CG "*) continue ;; esac
        le_seen="$le_seen$CG " CGROUPS=$((CGROUPS + 1))
        case "$KNOWN " in *":$CG:"*) continue ;; esac
        whole "$CG" && KNOWN="$KNOWN $KIND:$CG:$le_entry"
    done
    known_write
}

# split ENTRY -> KIND CG REP REP_START
split() {
    KIND=${1%%:*} REP_START=${1##*:}
    sp_rest=${1#*:}
    sp_rest=${sp_rest%:*}
    REP=/proc/${sp_rest##*:/proc/} CG=${sp_rest%:/proc/*}
}

# kill_known: the order that needs no scan and no fork, over the cgroups that are remembered.
kill_known() {
    REPS=''
    for kk_entry in $KNOWN; do
        split "$kk_entry"
        same "$REP" "$REP_START" && own_ns "$REP" && REPS="$REPS $REP"
    done
    for kk_entry in $KNOWN; do
        split "$kk_entry"
        [ -d "$CG" ] && kill_cgroup "$KIND" "$CG"
    done
    return 0
}

# strike: kill what the scan found: each cgroup once, and each process by itself where there is no
# cgroup to kill.
strike() {
    st_done=' '
    for st_entry in $MARKED; do
        if cgroup_of "${st_entry%:*}"; then
            case $st_done in *" $CG "*) ;; *)
                st_done="$st_done$CG "
                if whole "$CG"; then
                    case "$KNOWN " in *":$CG:"*) ;; *) KNOWN="$KNOWN $KIND:$CG:$st_entry" ;; esac
                fi
                kill_cgroup "$KIND" "$CG"
                ;;
            esac
        fi
        shoot_one "${st_entry%:*}" "${st_entry##*:}"
    done
    known_write
}

# known_left -> LEFT: processes still in a remembered cgroup; BLIND=yes when a hierarchy is gone.
known_left() {
    LEFT='' BLIND=no
    for kl_entry in $KNOWN; do
        split "$kl_entry"
        case $KIND in v1) kl_mnt=$FREEZER_MNT ;; *) kl_mnt=$V2_MNT ;; esac
        [ -e "$kl_mnt/cgroup.procs" ] || BLIND=yes
        [ -d "$CG" ] || continue
        tree "$CG"
        for kl_pid in $PIDS; do
            # A foreign process that moved in since is not load; one without a namespace is dying.
            [ -e "/proc/$kl_pid/ns/mnt" ] && ! scope_named "$CG" && ! own_ns "/proc/$kl_pid" && continue
            LEFT="$LEFT $kl_pid"
        done
    done
}

# describe BASE: one survivor line in SURVIVORS, unless it is gone.
describe() {
    pstat "$1" || return 0
    case $P_STATE in Z | X | x) return 0 ;; esac
    pid_of "$1"
    case $DESCRIBED in *" $PID "*) return 0 ;; esac
    DESCRIBED="$DESCRIBED$PID " COUNT=$((COUNT + 1))
    [ "$COUNT" -le 32 ] || return 0
    token "$P_COMM"
    de_comm=$TOKEN de_state=$P_STATE de_age=$((NOW - P_START))
    line "$1/wchan"
    token "$LINE"
    printf 'survivor pid=%s comm=%s state=%s wchan=%s age_s=%s\n' "$PID" "$de_comm" "$de_state" \
        "$TOKEN" "$((de_age / 100))"
}

# describe_left PID: a process in a load cgroup; of a thread group without leader, its threads.
describe_left() {
    describe "/proc/$1"
    set +f
    for dl_task in "/proc/$1"/task/[0-9]*; do
        case $DESCRIBED in *" $1 "*) break ;; esac
        describe "$dl_task"
    done
    set -f
}

# prove KILL BUDGET: two whole-host scans at least 250 ms apart that find nothing, or what is left
# after BUDGET centiseconds. KILL yes strikes at what each scan finds. -> QUIET yes|no
prove() {
    pr_quiet='' QUIET=no
    now
    pr_start=$NOW
    while :; do
        scan
        known_left
        now
        if [ -z "$MARKED$UNCLEAR$LEFT" ] && [ "$BLIND" = no ]; then
            [ -n "$pr_quiet" ] && { QUIET=yes && return 0; }
            pr_quiet=$NOW
            # One more than 25: the clock has whole centiseconds.
            while [ "$NOW" -lt $((pr_quiet + 26)) ]; do
                pause 0.26
                now
            done
            continue
        fi
        pr_quiet=''
        [ "$NOW" -ge $((pr_start + $2)) ] && return 0
        [ "$1" = yes ] && { kill_known && strike; }
        pause 0.05
    done
}

# report ORDERED: survivor lines and the proof line, on stdout.
report() {
    now
    DESCRIBED=' ' COUNT=0
    for re_entry in $MARKED; do same "${re_entry%:*}" "${re_entry##*:}" && describe "${re_entry%:*}"; done
    for re_pid in $LEFT; do describe_left "$re_pid"; done
    re_killed=0
    for re_pid in $KILLED; do
        case $DESCRIBED in *" $re_pid "*) ;; *) re_killed=$((re_killed + 1)) ;; esac
    done
    re_detail=$HOW
    if [ "$QUIET" = yes ]; then
        re_state=CLEAN
        [ $re_killed -eq 0 ] || re_state=STOPPED
    elif [ "$COUNT" -gt 0 ]; then
        re_state=SURVIVORS re_detail=$HOW,left:$COUNT
    else
        re_state=UNVERIFIED re_detail=$HOW,unsettled
        for re_entry in $UNCLEAR; do
            pid_of "$re_entry"
            re_detail=$re_detail,unclear:${PID%%:*}
            [ "${#re_detail}" -lt 60 ] || break
        done
        [ "$BLIND" = no ] || re_detail=$HOW,cgroups-gone
    fi
    printf 'proof state=%s stopped=%s scans=2 took_ms=%s detail=%s\n' "$re_state" "$re_killed" \
        "$(((NOW - $1) * 10))" "$re_detail"
}

# watch_report: what runs now, and remember where.
watch_report() {
    scan
    learn
    wa_pids=' ' wa_comms='' wa_n=0
    for wa_entry in $MARKED; do
        pid_of "${wa_entry%:*}"
        case $wa_pids in *" $PID "*) continue ;; esac
        wa_pids="$wa_pids$PID " wa_n=$((wa_n + 1))
        pstat "${wa_entry%:*}" && token "$P_COMM" || continue
        case ,$wa_comms, in *,"$TOKEN",*) ;; *)
            [ "${#wa_comms}" -gt 200 ] || wa_comms=${wa_comms:+$wa_comms,}$TOKEN
            ;;
        esac
    done
    printf 'watch processes=%s cgroups=%s comms=%s\n' "$wa_n" "$CGROUPS" "${wa_comms:--}"
}

# job WHAT ORDERED [ID]: the answer on stdout, its last line "end", with the ID if there is one.
job() {
    jo_end="end${3:+ $3}"
    case $1 in
    watch) watch_report ;;
    prove) prove no 30 && report "$2" ;;
    kill)
        STRIKE_EARLY=yes
        kill_known
        scan
        strike
        pause 0.05
        prove yes 40 && report "$2"
        ;;
    late)
        STRIKE_EARLY=yes
        scan
        strike
        # shellcheck disable=SC2086
        set -- $KILLED
        printf 'late n=%s\n' "$#"
        ;;
    esac
    STRIKE_EARLY=no
    printf '%s\n' "$jo_end"
}
