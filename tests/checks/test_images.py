"""The load image on each node, judged from what kubelets name."""

import pytest

from stressor.checks.base import Finding, Level
from stressor.checks.images import MAX_LISTED, MAX_NAMES, NodeImages, judge

PASS, WARN, FAIL = Level.PASS, Level.WARN, Level.FAIL
IMAGE = "registry.example/stressor-load:1"
DIGEST = "sha256:6b1a7d4f4d2bd0a9b0c2a3e35b2f3a9f6f0a4f2c9b8e7d6c5b4a39281706f5e4"
BOTH = (f"registry.example/stressor-load@{DIGEST}", IMAGE)
OTHERS = (("registry.k8s.io/etcd:3.6.4-0",), ("docker.io/library/busybox:latest",))
POLICY = "IfNotPresent"


def found(image: str, *images: tuple[str, ...], policy: str = POLICY) -> Finding:
    (finding,) = judge(image, policy, (NodeImages("w-1", "node-1", images),))
    return finding


@pytest.mark.parametrize(
    ("image", "listed"),
    [
        (IMAGE, BOTH),
        (f"registry.example/stressor-load@{DIGEST}", BOTH),
        (f"registry.example/stressor-load:1@{DIGEST}", BOTH),
        ("busybox", ("docker.io/library/busybox:latest",)),
        ("ann/load:2", ("docker.io/ann/load:2",)),
        ("ann/load:2", ("ann/load:2",)),
        ("localhost/load:2", ("localhost/load:2",)),
        ("registry:5000/load", ("registry:5000/load:latest",)),
        ("[fd00::1]:5000/load:2", ("[fd00::1]:5000/load:2",)),
    ],
)
def test_an_image_is_found_under_its_full_name(image: str, listed: tuple[str, ...]) -> None:
    assert found(image, *OTHERS, listed).level is PASS
    assert found(image, *OTHERS, listed, policy="Never").level is PASS


@pytest.mark.parametrize(
    ("image", "listed"),
    [
        (IMAGE, "registry.example/stressor-load:2"),
        (IMAGE, "docker.io/library/stressor-load:1"),
        ("stressor-load:1", "registry.example/stressor-load:1"),
        ("load", "docker.io/library/load:1"),
        (f"load:1@sha256:{'0' * 64}", "docker.io/library/load:1"),
    ],
)
def test_another_registry_tag_or_digest_is_another_image(image: str, listed: str) -> None:
    assert found(image, (listed,)).level is WARN


def test_what_would_be_pulled_is_a_warning_with_its_registry() -> None:
    missing = found(IMAGE, *OTHERS)
    assert (missing.level, missing.host) == (WARN, "w-1")
    assert missing.text == "not on node node-1: would be pulled from registry.example"
    assert missing.remedy == f"crictl pull {IMAGE}"
    assert "from docker.io" in found("stressor-load", *OTHERS).text


@pytest.mark.parametrize(("image", "policy"), [(IMAGE, "Never"), ("localhost/load:1", POLICY)])
def test_what_nothing_would_bring_is_a_failure(image: str, policy: str) -> None:
    missing = found(image, *OTHERS, policy=policy)
    assert (missing.level, missing.unknown) == (FAIL, False)
    assert "import" in missing.remedy


def test_a_policy_that_always_asks_the_registry_is_a_warning() -> None:
    assert found(IMAGE, BOTH, policy="Always").level is WARN


MANY = tuple((f"registry.example/image-{number}:1",) for number in range(MAX_LISTED))
NAMES = tuple(f"registry.example/tagged:{number}" for number in range(MAX_NAMES))


@pytest.mark.parametrize("images", [(), MANY, (NAMES,)])
def test_i4_a_node_that_does_not_name_all_its_images_is_unknown(
    images: tuple[tuple[str, ...], ...],
) -> None:
    pulled, kept = found(IMAGE, *images), found(IMAGE, *images, policy="Never")
    assert [(one.level, one.unknown) for one in (pulled, kept)] == [(WARN, True), (FAIL, True)]


def test_one_image_below_the_bound_is_the_whole_list() -> None:
    assert found(IMAGE, *MANY[1:]).unknown is False
    assert found(IMAGE, NAMES[1:]).unknown is False
    assert found(IMAGE, *MANY[1:], BOTH).level is PASS


def test_each_node_speaks_for_itself() -> None:
    nodes = (NodeImages("w-1", "a", (BOTH,)), NodeImages("w-2", "b", OTHERS))
    levels = [(one.host, one.level) for one in judge(IMAGE, POLICY, nodes)]
    assert levels == [("w-1", PASS), ("w-2", WARN)]


def test_i4_no_node_is_no_pass() -> None:
    (finding,) = judge(IMAGE, POLICY, ())
    assert (finding.level, finding.unknown) == (FAIL, True)


@pytest.mark.parametrize(
    "image", ["", "Load:1", "a b", "https://r.example/x", "x@1", "x:", "r.io/"]
)
def test_what_is_no_name_of_an_image_fails_once(image: str) -> None:
    nodes = (NodeImages("w-1", "a", OTHERS), NodeImages("w-2", "b", OTHERS))
    (finding,) = judge(image, POLICY, nodes)
    assert (finding.level, finding.host) == (FAIL, "")
