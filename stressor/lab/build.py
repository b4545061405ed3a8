"""Everything that the lab is laid out of, made once into the cache folder.

Each product stands under a key of its ingredients and appears by an atomic rename, so a build
may be cut off anywhere and go on later.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stressor.lab import golang, images, rootfs
from stressor.lab import places as p
from stressor.lab.shell import run

_PAUSE_SOURCE = Path(__file__).with_name("pause.c")
_SEED_RECIPE = "1"
"""Raise it when `_SEED` changes: it is part of the cache key."""

# Runs inside the root filesystem: unpacks every image into the containerd root bound there.
_SEED = """\
set -eu
containerd >/tmp/containerd.log 2>&1 & daemon=$!
tries=0
until ctr version >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 150 ] || { cat /tmp/containerd.log >&2; exit 1; }
    sleep 0.1
done
for tar in /mnt/*.tar; do ctr -n k8s.io images import "$tar"; done
kill $daemon
wait $daemon || true
sync
"""


@dataclass(frozen=True, slots=True)
class Kit:
    """The finished products, as paths in the cache."""

    programs: dict[str, Path]
    root: Path
    seed: Path
    """A containerd root folder in which every image is imported and unpacked."""
    images: tuple[str, ...]
    load_image: str


def _pause(places: p.Places, say: Callable[[str], None]) -> Path:
    source = _PAUSE_SOURCE.read_bytes()
    target = places.cache / "lab" / f"pause-{hashlib.sha256(source).hexdigest()[:12]}"
    if not target.exists():
        say("pause (C): usually under 1 s")
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.part")
        run(["gcc", "-Os", "-static", "-s", "-Wall", "-o", str(draft), str(_PAUSE_SOURCE)])
        draft.rename(target)
    return target


def _images(
    places: p.Places, root: Path, pause: Path, programs: dict[str, Path]
) -> tuple[images.Image, ...]:
    """All images; the load image is the last one."""
    version = p.KUBERNETES_VERSION
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    etcd = {name: programs[name] for name in ("etcd", "etcdctl", "etcdutl")}
    return (
        *(images.program_image(name, version, {name: programs[name]}) for name in names),
        images.program_image("etcd", images.ETCD_TAG, etcd),
        images.pause_image(pause),
        images.load_image(root, places.image_folder),
    )


def _image_tars(
    places: p.Places, wanted: tuple[images.Image, ...], say: Callable[[str], None]
) -> Path:
    """A folder with exactly one tar for each wanted image; older ones are deleted."""
    folder = places.cache / "lab" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for image in wanted:
        target = folder / _tar_name(places, image)
        if not target.exists():
            say(f"image {image.name}: usually 1-2 s")
            images.write(image, target)
    keep = {_tar_name(places, image) for image in wanted}
    for stale in folder.iterdir():
        if stale.name not in keep:
            stale.unlink()
    return folder


def _tar_name(places: p.Places, image: images.Image) -> str:
    """The image's name and, as a tag does not tell, the identity of the files in it."""
    digest = hashlib.sha256()
    for name, path in sorted(image.files.items()):
        state = path.stat()
        digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    return f"{digest.hexdigest()[:12]}_{image.file_name}"


def _seed(places: p.Places, root: Path, tars: Path, say: Callable[[str], None]) -> Path:
    names = " ".join([_SEED_RECIPE, root.name, *sorted(tar.name for tar in tars.iterdir())])
    key = hashlib.sha256(names.encode()).hexdigest()[:12]
    target = places.cache / "lab" / f"seed-{key}"
    if target.exists():
        return target
    say("containerd store with all images unpacked: usually 10-20 s")
    draft = target.with_name(f".{target.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    run(
        ["systemd-nspawn", "--quiet", "--machine=stressor-seed", "--register=no",
         "--keep-unit", "--as-pid2",
         "--private-network", "--capability=all", "--resolv-conf=off", "--timezone=off",
         "--link-journal=no", "--volatile=overlay", "-D", str(root),
         f"--bind={draft}:/var/lib/containerd", f"--bind-ro={tars}:/mnt",
         "/bin/sh", "-c", _SEED],
        timeout_s=300,
        cwd=Path("/"),
    )  # fmt: skip
    draft.rename(target)
    for stale in target.parent.glob("seed-*"):
        if stale != target:
            shutil.rmtree(stale, ignore_errors=True)
    return target


def load_image(places: p.Places) -> images.Image:
    """The load image as it would be built now."""
    return images.load_image(rootfs.folder(places), places.image_folder)


def cold(places: p.Places) -> bool:
    """True when something is missing that takes minutes and gigabytes to make."""
    return bool(golang.missing(places)) or not rootfs.folder(places).exists()


def build(places: p.Places, say: Callable[[str], None]) -> Kit:
    """Make whatever is missing; quick when nothing is.

    Raises LabError (a step failed) or LabRefused (no Go toolchain).
    """
    for _ in golang.build(places, say):
        pass
    programs = {entry.name: golang.binary(places, entry) for entry in golang.PROGRAMS}
    root = rootfs.build(places, say)
    wanted = _images(places, root, _pause(places, say), programs)
    tars = _image_tars(places, wanted, say)
    return Kit(
        programs=programs,
        root=root,
        seed=_seed(places, root, tars, say),
        images=tuple(image.name for image in wanted),
        load_image=wanted[-1].name,
    )
