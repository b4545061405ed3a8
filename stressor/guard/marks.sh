# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# shellcheck disable=SC2015,SC2094 # "A and B, else C" is meant; the files are the kernel's
# Marks: which processes are load of the run RUN ("all": of any run). A mark counts only in a mount
# namespace that is neither the host's nor the guard's own, or in a transient scope of the run.

# host_ns -> HOST_NS: a link into the host's mount namespace. PID 1's, or, where PID 1 has more
# capabilities than we (then its links are unreadable even for root), that of kthreadd. False where
# neither is to be had: then only the guard's own namespace is known to be no load's.
host_ns() {
    HOST_NS=/proc/1/ns/mnt
    [ -e "$HOST_NS" ] && return 0
    HOST_NS=/proc/2/ns/mnt
    [ -e "$HOST_NS" ] && pstat /proc/2 && [ "$P_COMM,$P_PPID" = kthreadd,0 ] && return 0
    HOST_NS=/proc/self/ns/mnt
    return 1
}

# own_ns BASE: is it in a mount namespace of its own? True too where there is no namespace to see
# (a zombie, a process late in its exit).
own_ns() {
    # shellcheck disable=SC3013
    ! [ "$1/ns/mnt" -ef "$HOST_NS" ] && ! [ "$1/ns/mnt" -ef /proc/self/ns/mnt ]
}

# named ID: is ID the run that is looked for?
named() {
    [ "$1" = "$RUN" ] || { [ "$RUN" = all ] && run_id "$1"; }
}

# mount_mark ROOT POINT (fields 4 and 5 of mountinfo): is this the load's own mount of the emptyDir
# volume stressor-<id>? The kubelet's mounts of the same volume (subPath, medium Memory) show in
# every daemon that sees the host's mount tree, so a mount point inside the kubelet's folders is no
# mark.
mount_mark() {
    case $2 in */volume-subpaths/* | *~empty-dir/*) return 1 ;; esac
    case $1 in *~empty-dir/stressor-*) ;; *) return 1 ;; esac
    mm_id=${1##*~empty-dir/stressor-}
    named "${mm_id%%/*}"
}

# mountinfo_marked BASE: 0 marked, 1 not, 2 unreadable or empty.
mountinfo_marked() {
    mi_found=2
    {
        while read -r lib_x lib_x lib_x mi_root mi_point lib_x; do
            mi_found=1
            mount_mark "$mi_root" "$mi_point" && return 0
        done <"$1/mountinfo"
    } 2>/dev/null
    return $mi_found
}

# environ_marked BASE: 0 marked, 1 not, 2 unreadable or empty, 3 cannot tell: dash drops the NULs
# between the entries, so a hit may be a piece of something else. May block on a stuck process.
environ_marked() {
    em_found=2 em_entry=''
    if [ "$READ_D" = yes ]; then
        {
            # shellcheck disable=SC3045
            while IFS= read -r -d '' em_entry || [ -n "$em_entry" ]; do
                em_found=1
                case $em_entry in STRESSOR_RUN=*) named "${em_entry#STRESSOR_RUN=}" && return 0 ;; esac
                em_entry=''
            done <"$1/environ"
        } 2>/dev/null
    else
        {
            while IFS= read -r em_entry || [ -n "$em_entry" ]; do
                em_found=1
                case $em_entry in *STRESSOR_RUN=*) return 3 ;; esac
                em_entry=''
            done <"$1/environ"
        } 2>/dev/null
    fi
    return $em_found
}

# scope_named PATH: does it lie in a scope that can only be this run's? A run's identity may hold a
# hyphen, so stressor-a-b.scope could be another run's: that one needs the environ mark as well.
scope_named() {
    [ "$RUN" != all ] || return 1
    case $1/ in
    */stressor-"$RUN".scope/* | */stressor-"$RUN"_*.scope/*) ;;
    *) return 1 ;;
    esac
    sn_rest=${1##*/stressor-"$RUN"}
    case ${sn_rest%%/*} in .scope | _*.scope) return 0 ;; esac
    return 1
}

# of_load BASE: does it share a mount namespace with a process known to be marked (REPS), or carry
# the mount mark itself? Builtins only; never touches the process's memory.
of_load() {
    [ -e "$1/ns/mnt" ] || return 1
    own_ns "$1" || return 1
    for ol_rep in $REPS; do
        # shellcheck disable=SC3013
        [ "$1/ns/mnt" -ef "$ol_rep/ns/mnt" ] && return 0
    done
    mountinfo_marked "$1" && REPS="$REPS $1"
}

# candidates -> CAND: bases that a mark could count on. A thread group whose leader has exited
# reads as a zombie while its other threads go on writing: then the living threads are looked at.
candidates() {
    CAND=''
    set +f
    for ca_base in /proc/[0-9]*; do
        [ "$ca_base" != /proc/1 ] && own_ns "$ca_base" || continue
        if [ -e "$ca_base/ns/mnt" ]; then
            CAND="$CAND $ca_base"
            continue
        fi
        pstat "$ca_base" || continue
        case $P_STATE in Z | X | x) ;; *) CAND="$CAND $ca_base" ;; esac
        for ca_task in "$ca_base"/task/[0-9]*; do
            [ "${ca_task##*/}" != "${ca_base##*/}" ] && own_ns "$ca_task" && pstat "$ca_task" || continue
            case $P_STATE in Z | X | x) ;; *) CAND="$CAND $ca_task" ;; esac
        done
    done
    set -f
}

# in_scope BASE: 0 in a scope of the run by name, 1 not, 3 the environ mark decides.
in_scope() {
    paths "$1" || return 1
    is_maybe=1
    for is_path in $IN_ALL; do
        scope_named "$is_path" && return 0
        case $is_path/ in */stressor-*.scope/*) is_maybe=3 ;; esac
    done
    return $is_maybe
}

# take BASE: note it as marked, with its start time.
take() {
    case " $MARKED" in *" $1:"*) return 0 ;; esac
    pstat "$1" || return 0
    case $P_STATE in Z | X | x) return 0 ;; esac
    MARKED="$MARKED $1:$P_START"
    own_ns "$1" && REPS="$REPS $1"
    return 0
}

# doubt BASE: in a namespace of its own, environ silent. mountinfo may clear it; so does a start
# before the run was armed. A process caught in exec or exit looks like this for a moment.
doubt() {
    mountinfo_marked "$1"
    case $? in
    0) take "$1" ;;
    2)
        pstat "$1" || return 0
        case $P_STATE in Z | X | x) return 0 ;; esac
        [ "$P_START" -ge "$ARMED" ] && UNCLEAR="$UNCLEAR $1:$P_START"
        ;;
    esac
    return 0
}

# root_mount BASE -> ROOT_MOUNT: the number of the mount that is its root, from the first line of its
# mount table; false where that line is another's, as in a root that is a mere folder.
root_mount() {
    ROOT_MOUNT='' rm_point=''
    { read -r ROOT_MOUNT lib_x lib_x lib_x rm_point lib_x <"$1/mountinfo"; } 2>/dev/null
    [ -n "$ROOT_MOUNT" ] && [ "$rm_point" = / ]
}

# cleared BASE: was the mount table of a process with the same mount namespace and the same root
# read in this scan, and free of the mark? Then BASE's reads the same. Equal folders are not enough:
# a bind mount of the root is the same folder and shows fewer mounts. Latest first: processes of one
# container have neighbouring pids.
cleared() {
    for cl_entry in $CLEARED; do
        cl_base=${cl_entry%:*}
        # shellcheck disable=SC3013
        [ "$1/ns/mnt" -ef "$cl_base/ns/mnt" ] && [ "$1/root" -ef "$cl_base/root" ] &&
            root_mount "$1" && [ "$ROOT_MOUNT" = "${cl_entry##*:}" ] && return 0
    done
    return 1
}

# mount_look BASE: mountinfo_marked, once for each namespace and root.
mount_look() {
    cleared "$1" && return 1
    mountinfo_marked "$1"
    ml_found=$?
    if [ $ml_found -eq 1 ] && root_mount "$1"; then CLEARED="$1:$ROOT_MOUNT $CLEARED"; fi
    return $ml_found
}

# look_builtin: the scan without a fork. Slow, and it may block on a stuck process's environ.
look_builtin() {
    CLEARED=''
    set +f
    for lb_base in /proc/[0-9]*; do
        in_scope "$lb_base"
        case $? in 0) take "$lb_base" ;; 3) CAND="$CAND $lb_base" ;; esac
    done
    set -f
    for lb_base in $CAND; do
        mount_look "$lb_base" && take "$lb_base" && continue
        environ_marked "$lb_base"
        case $? in
        0) take "$lb_base" ;;
        2) doubt "$lb_base" ;;
        3) pstat "$lb_base" && UNCLEAR="$UNCLEAR $lb_base:$P_START" ;;
        esac
    done
}

# hits FILE OPTION... PATTERN: HITS = what grep lists among CAND's FILEs. Exit codes prove nothing
# (1 is "none", 2 is also "one of them vanished"): the canary, a file that must match, comes last
# in the list, and without it in the answer the scan has failed.
hits() {
    hi_file=$1
    shift
    set -- "$@" --
    for hi_base in $CAND; do set -- "$@" "$hi_base/$hi_file"; done
    # shellcheck disable=SC2086
    HITS=$($LIMIT grep "$@" "$DIR/canary/$hi_file" </dev/null 2>/dev/null)
    case $HITS in *"$DIR/canary/$hi_file"*) ;; *) return 1 ;; esac
    HITS=${HITS%"$DIR/canary/$hi_file"*}
}

# look_grep: a handful of forked greps over all candidates. False when they cannot be believed.
look_grep() {
    lg_own=$CAND lg_scoped=''
    set +f
    for lg_base in /proc/[0-9]*; do lg_scoped="$lg_scoped $lg_base"; done
    set -f
    CAND=$lg_scoped lg_scoped=''
    hits cgroup -l '/stressor-[^/]*\.scope' || return 1
    for lg_hit in $HITS; do
        in_scope "${lg_hit%/cgroup}"
        case $? in 0) take "${lg_hit%/cgroup}" ;; 3) lg_scoped="$lg_scoped ${lg_hit%/cgroup}" ;; esac
    done
    CAND=$lg_own
    lg_id=$RUN
    [ "$RUN" = all ] && lg_id='[a-z0-9][a-z0-9-]*'
    hits mountinfo -H "~empty-dir/stressor-${lg_id}[/ ]" || return 1
    IFS='
'
    for lg_hit in $HITS; do
        IFS=' '
        lg_base=${lg_hit%%/mountinfo:*}
        # shellcheck disable=SC2086
        set -- ${lg_hit#*/mountinfo:}
        case $lg_base in /proc/*) mount_mark "${4:-}" "${5:-}" && take "$lg_base" ;; esac
    done
    IFS=' 	
'
    [ "${STRIKE_EARLY:-no}" = yes ] && strike
    CAND=$lg_own$lg_scoped
    hits environ -zlx "STRESSOR_RUN=$lg_id" || return 1
    for lg_hit in $HITS; do take "${lg_hit%/environ}"; done
    hits environ -l '' || return 1
    lg_spoke=$HITS
    for lg_base in $CAND; do
        case "
$lg_spoke" in
        *"
$lg_base/environ
"*) ;;
        *) doubt "$lg_base" ;;
        esac
    done
}

# scan -> MARKED, UNCLEAR ("BASE:START" each), HOW (grep|builtin). mountinfo first: reading it
# cannot block on a stuck process, so what it finds is struck before environ is read.
scan() {
    MARKED='' UNCLEAR='' REPS='' HOW=grep
    candidates
    sc_cand=$CAND
    if ! can_fork || ! look_grep; then
        HOW=builtin CAND=$sc_cand UNCLEAR=''
        look_builtin
    fi
    sc_doubts=$UNCLEAR UNCLEAR=''
    [ -z "$sc_doubts" ] || pause 0.03
    for sc_entry in $sc_doubts; do
        same "${sc_entry%:*}" "${sc_entry##*:}" || continue
        environ_marked "${sc_entry%:*}"
        case $? in
        0) take "${sc_entry%:*}" ;;
        2) doubt "${sc_entry%:*}" ;;
        3) UNCLEAR="$UNCLEAR $sc_entry" ;;
        esac
    done
}

# canary: files that every scan must find, beside the processes.
canary() {
    ca_id=$RUN
    [ "$RUN" = all ] && ca_id=canary
    mkdir -p "$DIR/canary" || return 1
    printf 'A=1\000STRESSOR_RUN=%s\000B=2\000' "$ca_id" >"$DIR/canary/environ" &&
        printf '1 1 0:1 /x~empty-dir/stressor-%s /x rw - x x rw\n' "$ca_id" >"$DIR/canary/mountinfo" &&
        printf '0::/x/stressor-%s.scope\n' "$ca_id" >"$DIR/canary/cgroup"
}
