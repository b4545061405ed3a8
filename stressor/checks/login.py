"""Judging a timed login: an abort without armed guards is a login and a `sudo -n`.

The values come from a login by IP address, as abort makes it. Where resolvers are dead, sshd's
UseDNS, GSSAPIAuthentication and sudo's look-up of its own host name each add 5 to 60 s.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stressor.checks.base import Finding, Level, unknown

NAME = "login"
FAIL_S = 7.0
"""A cold kill has 8 s in all (engine.abort), of which the host's scans take about one."""
WARN_S = 2.0
"""A cold login takes 0.13 s on a LAN and 0.9 s at 100 ms of round trip; more has a cause."""
_UNREACHABLE = {
    "refused": ("nothing listens on the port", "is sshd running, is the port right?"),
    "no_route": ("no route to the address", "address, VPN; behind a jump host: stressor_jumps"),
    "silent": ("no answer in time", "host, firewall, or an sshd that hangs"),
    "auth": ("the key was refused", "authorized_keys, key_path, or route back-off"),
    "key_changed": ("the host key is another one", "find out why before trusting it"),
    "key_unknown": ("the host key is not known", "pin it: host_key, or known_hosts"),
    "sudo": ("sudo asks for a password, or refuses", "NOPASSWD in sudoers for this user"),
    "forbidden": ("sshd forbids the jump", "AllowTcpForwarding yes on the jump host"),
    "lost": ("the connection broke off", "network, or sshd's MaxStartups"),
    "protocol": ("what answers speaks no SSH we know", "port, banner, key exchange"),
}


@dataclass(frozen=True, slots=True)
class LoginTrial:
    """One try of one route. `login_s`: from dialling until a first command ended; `command_s`: a
    command that does nothing, on that connection; `sudo_s`: the same under `sudo -n`. None: not
    tried, or no answer. `noise_bytes`: what came before the command's own output; None: not known.
    `reason`: the value of an UnreachableReason, when there was one."""

    host: str
    route: str
    login_s: float | None = None
    command_s: float | None = None
    sudo_s: float | None = None
    noise_bytes: int | None = None
    reason: str | None = None
    become: bool = False


def judge_login(trial: LoginTrial) -> tuple[Finding, ...]:
    """The findings of one route: its failure alone, else its slowness and noise, else PASS."""
    if trial.reason is not None:
        return (_failed(trial, trial.reason),)
    times = (trial.login_s, trial.command_s, *((trial.sudo_s,) if trial.become else ()))
    missing = [time_s for time_s in times if time_s is None]
    if missing:
        return (_unknown(trial, "a step gave no answer in time", "log in by hand: ssh -v"),)
    return tuple(_found(trial)) or (_passed(trial),)


def _found(trial: LoginTrial) -> Iterator[Finding]:
    login_s, command_s = trial.login_s or 0.0, trial.command_s or 0.0
    yield from _slow(trial, "login", login_s - command_s, "UseDNS no, GSSAPIAuthentication no; PAM")
    yield from _slow(trial, "shell", command_s, "slow .bashrc: return early if not interactive")
    if trial.become:
        sudo_s = (trial.sudo_s or 0.0) - command_s
        yield from _slow(trial, "sudo -n", sudo_s, "own host name into /etc/hosts, for sudo")
    if trial.noise_bytes is None:
        yield _unknown(trial, "what the login prints", "ssh HOST true | wc -c")
    elif trial.noise_bytes > 0:
        text = f"{trial.route}: {trial.noise_bytes} bytes before our output"
        remedy = "noisy .bashrc: print only if [ -t 1 ]"
        yield Finding(NAME, trial.host, Level.WARN, text, remedy)
    if _total_s(trial) >= FAIL_S:
        text = f"{trial.route}: {_total_s(trial):.1f} s, too slow for an abort"
        yield Finding(NAME, trial.host, Level.FAIL, text, f"below {FAIL_S:.0f} s; see the warnings")


def _total_s(trial: LoginTrial) -> float:
    """A cold kill logs in, and its one command runs under sudo where that is needed."""
    extra_s = (trial.sudo_s or 0.0) - (trial.command_s or 0.0) if trial.become else 0.0
    return (trial.login_s or 0.0) + max(extra_s, 0.0)


def _slow(trial: LoginTrial, part: str, took_s: float, remedy: str) -> Iterator[Finding]:
    if took_s > WARN_S:
        text = f"{trial.route}: {part} took {took_s:.1f} s"
        yield Finding(NAME, trial.host, Level.WARN, text, remedy)


def _passed(trial: LoginTrial) -> Finding:
    sudo = f", sudo {trial.sudo_s:.2f} s" if trial.become else ""
    text = f"{trial.route}: login {trial.login_s:.2f} s{sudo}"
    return Finding(NAME, trial.host, Level.PASS, text)


def _failed(trial: LoginTrial, reason: str) -> Finding:
    if reason not in _UNREACHABLE:
        return _unknown(trial, f"ended with {reason[:20]}", "log in by hand: ssh -v")
    text, remedy = _UNREACHABLE[reason]
    return Finding(NAME, trial.host, Level.FAIL, f"{trial.route}: {text}", remedy)


def _unknown(trial: LoginTrial, why: str, remedy: str) -> Finding:
    return unknown(NAME, trial.host, Level.FAIL, f"{trial.route}: {why}", remedy)
