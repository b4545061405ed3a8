#!/bin/sh
# Set-up from a bare Debian 12 as root: packages, then the tool's own virtual environment.
# Safe to interrupt and to repeat: each part is skipped when its result is there (seconds).
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
refuse() {
    printf 'setup: REFUSED: %s\n' "$*" >&2
    exit 3
}

# Lab and builds need space and memory; measured: 7 GB of caches and binaries cold, 2 GB of state.
need_disk_mib=3000
cache=${STRESSOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stressor}
[ -d "$cache" ] || need_disk_mib=12000
probe=$cache
while [ ! -d "$probe" ]; do probe=$(dirname "$probe"); done
free_mib=$(df -Pm "$probe" | awk 'NR == 2 { print $4 }')
[ "$free_mib" -ge "$need_disk_mib" ] ||
    refuse "$free_mib MiB free at $probe, $need_disk_mib needed; free some, or set STRESSOR_CACHE"
memory_mib=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
[ "$memory_mib" -ge 6144 ] ||
    refuse "$memory_mib MiB of memory available, 6144 needed (three nodes, a build of 2 GiB)"
[ "$(id -u)" -eq 0 ] || refuse "root is needed: the lab makes namespaces, mounts and nodes"

packages="python3 python3-venv ca-certificates git make gcc libc6-dev debootstrap systemd-container
iproute2 iptables procps kmod e2fsprogs util-linux fuse3 busybox dash openssh-client openssh-server
sudo curl wget fio stress-ng"
missing=
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    if [ "$package" = busybox ] && command -v busybox >/dev/null; then continue; fi
    [ "$state" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    say "Debian packages (usually 1-2 min):$missing"
    # Tests need the sshd program, and nobody wants a new listener on this machine: services of
    # packages that are installed here are not started.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT INT TERM
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of package names, one word each
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

python=${PYTHON:-python3}
"$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    python=/usr/bin/python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    refuse "Python 3.11 or newer is needed; $python is older"

stamp=.venv/stressor.stamp
want=$(sha256sum requirements.lock pyproject.toml | sha256sum | cut -c1-64)
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$want" ]; then
    say "virtual environment from requirements.lock (usually about 1 min)"
    "$python" -m venv --clear .venv
    .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
    printf '%s\n' "$want" >"$stamp"
fi
say "ready"
