# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# shellcheck disable=SC2015,SC2094 # "A and B, else C" is meant; the files are the kernel's
# Control groups: where they are mounted, which one a process is in, how one is killed.

# mounts -> FREEZER_MNT BLKIO_MNT PIDS_MNT V2_MNT, empty where there is none.
mounts() {
    FREEZER_MNT='' BLKIO_MNT='' PIDS_MNT='' V2_MNT=''
    while read -r lib_x mo_at mo_type mo_opts lib_x; do
        case $mo_at in *\\*) continue ;; esac
        case $mo_type,$mo_opts, in
        cgroup2,*) V2_MNT=${V2_MNT:-$mo_at} ;;
        cgroup,*,freezer,*) FREEZER_MNT=${FREEZER_MNT:-$mo_at} ;;
        esac
        case $mo_type,$mo_opts, in cgroup,*,blkio,*) BLKIO_MNT=${BLKIO_MNT:-$mo_at} ;; esac
        case $mo_type,$mo_opts, in cgroup,*,pids,*) PIDS_MNT=${PIDS_MNT:-$mo_at} ;; esac
    done </proc/self/mounts
}

# paths BASE -> IN_FREEZER IN_BLKIO IN_PIDS IN_V2 IN_ALL: its cgroups as /proc/PID/cgroup names
# them. Never composed from a pod's UID: drivers differ, and an empty guess reads like success.
paths() {
    IN_FREEZER='' IN_BLKIO='' IN_PIDS='' IN_V2='' IN_ALL=''
    {
        while IFS= read -r pt_line; do
            pt_rest=${pt_line#*:}
            pt_path=${pt_rest#*:}
            IN_ALL="$IN_ALL $pt_path "
            case ,${pt_rest%%:*}, in ,,) IN_V2=$pt_path ;; esac
            case ,${pt_rest%%:*}, in *,freezer,*) IN_FREEZER=$pt_path ;; esac
            case ,${pt_rest%%:*}, in *,blkio,*) IN_BLKIO=$pt_path ;; esac
            case ,${pt_rest%%:*}, in *,pids,*) IN_PIDS=$pt_path ;; esac
        done <"$1/cgroup"
    } 2>/dev/null
    [ -n "$IN_ALL" ]
}

# own_paths -> OWN_PIDS OWN_V2
own_paths() {
    paths /proc/self
    OWN_PIDS=$IN_PIDS OWN_V2=$IN_V2
}

# usable PATH: below the root, not deleted, inside our view, and a single word.
usable() {
    # shellcheck disable=SC2221,SC2222
    case $1 in '' | / | *..* | *' '* | *'	'* | *[*?]* | *\[* | *\\*) return 1 ;; /*) return 0 ;; esac
    return 1
}

# holds DIR PID: does the kernel list PID in DIR itself?
holds() {
    {
        while read -r ho_pid; do
            [ "$ho_pid" = "$2" ] && return 0
        done <"$1/cgroup.procs"
    } 2>/dev/null
    return 1
}

# cgroup_of BASE -> KIND (v1|v2) and CG (its directory), only when the kernel confirms membership.
cgroup_of() {
    KIND='' CG=''
    paths "$1" || return 1
    pid_of "$1"
    if [ -n "$FREEZER_MNT" ] && usable "$IN_FREEZER" && holds "$FREEZER_MNT$IN_FREEZER" "$PID"; then
        KIND=v1 CG=$FREEZER_MNT$IN_FREEZER
    elif [ -n "$V2_MNT" ] && usable "$IN_V2" && holds "$V2_MNT$IN_V2" "$PID"; then
        KIND=v2 CG=$V2_MNT$IN_V2
    fi
    [ -n "$CG" ]
}

# tree DIR -> TREE (DIR and everything below it), PIDS (every process in it).
tree() {
    TREE=$1 PIDS='' tr_level=$1
    while [ -n "$tr_level" ]; do
        tr_next=''
        for tr_dir in $tr_level; do
            set +f
            for tr_sub in "$tr_dir"/*/; do
                [ -d "$tr_sub" ] && usable "$tr_sub" && tr_next="$tr_next ${tr_sub%/}"
            done
            set -f
        done
        TREE=$TREE$tr_next tr_level=$tr_next
    done
    for tr_dir in $TREE; do
        { while read -r tr_pid; do PIDS="$PIDS $tr_pid"; done <"$tr_dir/cgroup.procs"; } 2>/dev/null
    done
}

# whole DIR: may DIR be killed as one? Each process in it shares the mount namespace of a marked
# process (REPS), or DIR lies in a scope of the run. -> QUALIFIED (those that do), TREE, PIDS
whole() {
    tree "$1"
    QUALIFIED='' wh_all=yes
    for wh_pid in $PIDS; do
        if [ "$wh_pid" = 1 ] || [ "$wh_pid" = "$$" ] || [ "$wh_pid" = "$ME" ]; then
            wh_all=no
        elif scope_named "$1" || of_load "/proc/$wh_pid"; then
            QUALIFIED="$QUALIFIED $wh_pid"
        elif pstat "/proc/$wh_pid" && [ -e "/proc/$wh_pid/ns/mnt" ]; then
            wh_all=no
        fi
    done
    [ $wh_all = yes ] && [ -n "$QUALIFIED" ]
}

# lift DIR...: take away I/O limits: fio behind 128 KiB/s outlived SIGKILL by 16 s, without limit
# by 8 ms (docs/guard-protocol.md).
lift_v2() {
    for li_dir in "$@"; do
        {
            while read -r li_dev lib_x; do
                put "$li_dir/io.max" "$li_dev rbps=max wbps=max riops=max wiops=max"
            done <"$li_dir/io.max"
        } 2>/dev/null
    done
}

lift_v1() {
    for li_dir in "$@"; do
        for li_what in read_bps write_bps read_iops write_iops; do
            li_file=$li_dir/blkio.throttle.${li_what}_device
            { while read -r li_dev lib_x; do put "$li_file" "$li_dev 0"; done <"$li_file"; } 2>/dev/null
        done
    done
}

# lift_for BASE: blkio is a hierarchy of its own on v1; its cgroup too must be the load's alone.
lift_for() {
    [ -n "$BLKIO_MNT" ] && paths "$1" && usable "$IN_BLKIO" || return 0
    pid_of "$1"
    lf_dir=$BLKIO_MNT$IN_BLKIO
    # shellcheck disable=SC2086
    holds "$lf_dir" "$PID" && whole "$lf_dir" && lift_v1 $TREE
    return 0
}

# shoot PID...: SIGKILL, and count each process once in KILLED.
shoot() {
    for sh_pid in "$@"; do
        case $sh_pid in '' | 0 | 1 | *[!0-9]*) continue ;; esac
        { kill -9 "$sh_pid"; } 2>/dev/null || continue
        case " $KILLED " in *" $sh_pid "*) ;; *) KILLED="$KILLED $sh_pid" ;; esac
    done
}

# shoot_one BASE START: only if it is still that process.
shoot_one() {
    same "$1" "$2" || return 0
    pid_of "$1"
    shoot "$PID"
}

thaw() {
    for th_dir in "$@"; do put "$th_dir/freezer.state" THAWED; done
}

# kill_v1 DIR: freeze (nothing forks away), SIGKILL, thaw (a frozen task ignores SIGKILL until it
# thaws, runc #3217); again until empty, at most `rounds` times. FROZEN is for the EXIT trap.
kill_v1() {
    k1_round=0
    while [ "$k1_round" -lt 5 ]; do
        k1_round=$((k1_round + 1)) k1_look=0
        whole "$1" || break
        FROZEN=$TREE
        put "$1/freezer.state" FROZEN
        while [ "$k1_look" -lt 40 ] && line "$1/freezer.state" && [ "$LINE" != FROZEN ]; do
            k1_look=$((k1_look + 1))
        done
        # Again: what was forked before the freeze took hold, what moved in, what does not belong.
        # shellcheck disable=SC2086
        { whole "$1" && shoot $PIDS; } || shoot $QUALIFIED
        # shellcheck disable=SC2086
        thaw $FROZEN $TREE
        FROZEN=''
        [ "$k1_round" -lt 5 ] && [ "${QUICK:-no}" = no ] && pause 0.02
    done
    tree "$1"
    # Also when nothing was left to kill: somebody's freeze must not keep the dying alive.
    # shellcheck disable=SC2086
    thaw $TREE
}

# kill_v2 DIR: cgroup.kill (Linux 5.14) covers racing forks; without it freeze, SIGKILL, thaw.
kill_v2() {
    # shellcheck disable=SC2086
    lift_v2 $TREE
    k2_pids=$PIDS
    if put "$1/cgroup.kill" 1; then
        for k2_pid in $k2_pids; do
            case " $KILLED " in *" $k2_pid "*) ;; *) KILLED="$KILLED $k2_pid" ;; esac
        done
    else
        FROZEN_V2=$1
        put "$1/cgroup.freeze" 1
        # shellcheck disable=SC2086
        { whole "$1" && shoot $PIDS; } || shoot $QUALIFIED
    fi
    for k2_dir in $TREE; do put "$k2_dir/cgroup.freeze" 0; done
    FROZEN_V2=''
}

# unfreeze: for the EXIT trap; whatever happened, nothing stays frozen by us.
unfreeze() {
    # shellcheck disable=SC2086
    [ -z "$FROZEN" ] || thaw $FROZEN
    [ -z "$FROZEN_V2" ] || put "$FROZEN_V2/cgroup.freeze" 0
}

# kill_cgroup KIND DIR: as a whole when it is the load's alone, else one by one.
kill_cgroup() {
    if whole "$2"; then
        for kc_pid in $QUALIFIED; do
            lift_for "/proc/$kc_pid"
            break
        done
        whole "$2"
        "kill_$1" "$2"
    else
        for kc_pid in $QUALIFIED; do
            pstat "/proc/$kc_pid" && kc_start=$P_START || continue
            of_load "/proc/$kc_pid" && shoot_one "/proc/$kc_pid" "$kc_start"
        done
    fi
}
