# shellcheck shell=sh
# shellcheck disable=SC2034,SC2153,SC2154 # the pieces share their variables; the whole is checked too
# What the resident guard says of its host once a second: stall totals and load, by builtins.

# psi KEY FILE -> PSI: "psi_KEY_some_us=N psi_KEY_full_us=N", "-" where the kernel says nothing.
psi() {
    ps_some=- ps_full=-
    { while read -r ps_kind lib_x lib_x lib_x ps_total; do
        case $ps_kind,$ps_total in
        *[!0-9]) ;;
        some,total=?*) ps_some=${ps_total#total=} ;;
        full,total=?*) ps_full=${ps_total#total=} ;;
        esac
    done <"$2"; } 2>/dev/null
    PSI="psi_$1_some_us=$ps_some psi_$1_full_us=$ps_full"
}

sample() {
    read -r sa_boot lib_x </proc/uptime
    sa_text="boot=$sa_boot"
    for sa_what in cpu memory io; do
        psi $sa_what /proc/pressure/$sa_what
        sa_text="$sa_text $PSI"
    done
    sa_load=-
    line /proc/loadavg && sa_load=${LINE%% *}
    say "$1 ok sample $sa_text load1=$sa_load"
}
