"""Container images without a builder: docker-archive tars with one layer each, by tarfile.

Every entry has the same owner and time, so the same content always has the same digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stressor.lab import places as p
from stressor.lab.errors import LabError
from stressor.lab.shell import run

ETCD_TAG = f"{p.ETCD_VERSION}-0"
ENTRY_POINT = "/usr/local/bin/stressor-entry"
LOAD_TOOLS = (
    "fio stress-ng iperf3 dash timeout sleep cat date mkdir env test [ printf echo rm ls head tail "
    "wc sync dd df stat id nproc sort tr cut seq touch true false cp mv mktemp tee grep sed "
    "busybox curl"
).split()
_DIRECTORIES = {"tmp": 0o1777, "run": 0o755, "etc": 0o755, "root": 0o700, "var/tmp": 0o1777}
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"
_MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


@dataclass(frozen=True, slots=True)
class Image:
    """What goes into one image: files by their path inside (no leading slash)."""

    name: str
    files: dict[str, Path]
    texts: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    directories: dict[str, int] = field(default_factory=dict)
    executable: frozenset[str] = frozenset()
    entry_point: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return self.name.replace("/", "_").replace(":", "_") + ".tar"


def program_image(name: str, tag: str, programs: dict[str, Path]) -> Image:
    """An image of static programs, found by kubeadm's manifests through PATH."""
    files = {f"usr/local/bin/{program}": path for program, path in programs.items()}
    return Image(
        name=f"{p.IMAGE_REPOSITORY}/{name}:{tag}",
        files=files,
        directories={"tmp": 0o1777},
        executable=frozenset(files),
        entry_point=(f"/usr/local/bin/{name}",),
    )


def pause_image(program: Path) -> Image:
    return Image(
        name=f"{p.IMAGE_REPOSITORY}/pause:{p.PAUSE_TAG}",
        files={"pause": program},
        executable=frozenset({"pause"}),
        entry_point=("/pause",),
    )


def inside(root: Path, path: str) -> Path:
    """The regular file that `path` leads to within `root`, following links there, not here.

    Raises LabError when it leads nowhere.
    """
    place = Path(path.lstrip("/"))
    for _ in range(40):
        walked = Path()
        for part in place.parts:
            step = walked / part
            if (root / step).is_symlink():
                target = Path((root / step).readlink())
                rest = place.relative_to(step)
                base = Path(str(target).lstrip("/")) if target.is_absolute() else walked / target
                place = _normal(base / rest)
                break
            walked = step
        else:
            if (root / place).is_file():
                return root / place
            break
    raise LabError(f"{path} is missing in the root filesystem {root}")


def _normal(path: Path) -> Path:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return Path(*parts)


def libraries(root: Path, programs: Iterable[str]) -> frozenset[str]:
    """Paths of the shared libraries of `programs`, as their own loader finds them in `root`."""
    said = run(["chroot", str(root), "ldd", *programs], timeout_s=60)
    words = (word for line in said.splitlines() for word in line.split())
    return frozenset(word for word in words if word.startswith("/") and not word.endswith(":"))


def _merged(path: str) -> str:
    """`/lib/x` as `usr/lib/x`: the old folders are links in the image."""
    first, _, rest = path.lstrip("/").partition("/")
    return f"{_MERGED[first]}/{rest}" if first in _MERGED else path.lstrip("/")


def load_image(root: Path, image_folder: Path | None) -> Image:
    """The image that load runs in: tools and libraries from `root`, the entry point from us."""
    tools = [f"/usr/bin/{name}" for name in LOAD_TOOLS]
    files = {path.lstrip("/"): inside(root, path) for path in tools}
    executable = set(files)
    dynamic = [path for path in tools if not path.endswith("busybox")]
    for path in libraries(root, dynamic):
        files[_merged(path)] = inside(root, path)
        executable.add(_merged(path))
    if image_folder:
        for source in sorted(image_folder.rglob("*")):
            if source.is_file():
                files[f"usr/local/share/stressor/{source.relative_to(image_folder)}"] = source
        entry = image_folder / "entrypoint.sh"
        if entry.is_file():
            files[ENTRY_POINT.lstrip("/")] = entry
            executable.add(ENTRY_POINT.lstrip("/"))
    return Image(
        name=load_name(root, image_folder),
        files=files,
        texts={"etc/passwd": _PASSWD, "etc/group": _GROUP},
        links={**_MERGED, "usr/bin/sh": "dash"},
        directories=_DIRECTORIES,
        executable=frozenset(executable),
    )


def load_name(root: Path, image_folder: Path | None) -> str:
    """Name of the load image; its tag changes with root filesystem, tool list and `image/`."""
    digest = hashlib.sha256(" ".join([root.name, *LOAD_TOOLS]).encode())
    for source in sorted(image_folder.rglob("*")) if image_folder else ():
        if source.is_file():
            digest.update(f"\0{source.name}\0".encode() + source.read_bytes())
    return f"{p.IMAGE_REPOSITORY}/load:{digest.hexdigest()[:12]}"


def _entry(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = mode
    return info


def _layer(image: Image) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as layer:
        for name, mode in sorted(image.directories.items()):
            info = _entry(name, mode)
            info.type = tarfile.DIRTYPE
            layer.addfile(info)
        for name, target in sorted(image.links.items()):
            info = _entry(name, 0o777)
            info.type, info.linkname = tarfile.SYMTYPE, target
            layer.addfile(info)
        for name, text in sorted(image.texts.items()):
            _add(layer, name, 0o644, text.encode())
        for name, path in sorted(image.files.items()):
            mode = 0o755 if name in image.executable else 0o644
            _add(layer, name, mode, path.read_bytes())
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, mode: int, content: bytes) -> None:
    info = _entry(name, mode)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def _config(image: Image, layer_digest: str) -> bytes:
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": list(image.entry_point) or None,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created_by": "stressor lab"}],
    }
    return json.dumps(config, sort_keys=True).encode()


def write(image: Image, target: Path) -> None:
    """Write `image` as a docker-archive; the file appears whole or not at all."""
    layer = _layer(image)
    layer_digest = hashlib.sha256(layer).hexdigest()
    config = _config(image, layer_digest)
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    layer_name = f"{layer_digest}/layer.tar"
    manifest = [{"Config": config_name, "RepoTags": [image.name], "Layers": [layer_name]}]
    draft = target.with_name(f".{target.name}.part")
    with suppress(FileNotFoundError):
        draft.unlink()
    with tarfile.open(draft, "w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, config_name, 0o644, config)
        _add(archive, layer_name, 0o644, layer)
        _add(archive, "manifest.json", 0o644, json.dumps(manifest).encode())
    draft.rename(target)
