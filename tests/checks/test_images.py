"""Whether a node has the load image, by the names that runtimes give to images."""

import pytest

from stressor.checks.base import Finding, Level
from stressor.checks.images import LISTED_AT_MOST, NodeImages, judge

REMOTE = "registry.example/team/stressor-load:1"
PAUSE = ("registry.k8s.io/pause:3.9", "registry.k8s.io/pause@sha256:70")
DIGEST = "sha256:0a1b"


def found(image: str, *names: str, listed: int = 7, policy: str = "IfNotPresent") -> Finding:
    (one,) = judge(image, policy, [NodeImages("w-1", "w-1", (*PAUSE, *names), listed)])
    assert one.host == "w-1"
    return one


@pytest.mark.parametrize(
    ("image", "name"),
    [
        (REMOTE, REMOTE),
        ("stressor-load:1", "docker.io/library/stressor-load:1"),
        ("docker.io/library/stressor-load:1", "stressor-load:1"),
        ("docker.io/stressor-load:1", "docker.io/library/stressor-load:1"),
        ("stressor-load:1", "localhost/stressor-load:1"),
        ("localhost/stressor-load:1", "localhost/stressor-load:1"),
        ("team/stressor-load:1", "docker.io/team/stressor-load:1"),
        ("stressor-load", "docker.io/library/stressor-load:latest"),
        ("registry.example:5000/stressor-load", "registry.example:5000/stressor-load:latest"),
        (f"registry.example/load@{DIGEST}", f"registry.example/load@{DIGEST}"),
        # With both, runtimes go by the digest.
        (f"registry.example/load:1@{DIGEST}", f"registry.example/load@{DIGEST}"),
    ],
)
def test_an_image_is_known_by_any_of_its_names(image: str, name: str) -> None:
    one = found(image, name)
    assert (one.level, one.text) == (Level.PASS, f"{image} is there")


@pytest.mark.parametrize(
    ("image", "name"),
    [
        (REMOTE, "registry.example/team/stressor-load:2"),
        (REMOTE, "other.example/team/stressor-load:1"),
        (REMOTE, "localhost/team/stressor-load:1"),
        (REMOTE, "registry.example/stressor-load:1"),
        (f"registry.example/load@{DIGEST}", "registry.example/load@sha256:ff"),
        (f"registry.example/load@{DIGEST}", "registry.example/load:1"),
        ("registry.example/load", f"registry.example/load@{DIGEST}"),
        ("registry.example/load", "<none>:<none>"),
    ],
)
def test_another_image_is_not_it(image: str, name: str) -> None:
    assert found(image, name).level is Level.WARN


def test_an_absent_image_would_be_pulled() -> None:
    one = found(REMOTE)
    assert (one.level, one.unknown) == (Level.WARN, False)
    assert "would be pulled (IfNotPresent)" in one.text


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("localhost/stressor-load:1", "no registry"),
        ("stressor-load:1", "docker.io/library/stressor-load"),
        ("stressor.invalid/load:1", "RFC 2606"),
        ("stressor.invalid:5000/load:1", "RFC 2606"),
    ],
)
def test_an_absent_local_image_is_a_failure(image: str, why: str) -> None:
    one = found(image)
    assert one.level is Level.FAIL
    assert why in one.text
    assert "stressor_load_image" in one.remedy


def test_a_registry_on_the_node_is_one() -> None:
    assert found("localhost:5000/load:1").level is Level.WARN


def test_never_pulling_makes_an_absent_image_a_failure() -> None:
    one = found(REMOTE, policy="Never")
    assert (one.level, "Never" in one.text) == (Level.FAIL, True)


def test_always_pulling_needs_the_registry_though_it_is_there() -> None:
    assert found(REMOTE, REMOTE, policy="Always").level is Level.WARN


@pytest.mark.parametrize("image", [REMOTE, "stressor-load:1"])
@pytest.mark.parametrize("listed", [LISTED_AT_MOST, LISTED_AT_MOST + 1, 0])
def test_i4_a_list_that_may_be_cut_makes_absence_unknown(image: str, listed: int) -> None:
    one = found(image, listed=listed)
    assert (one.level, one.unknown) == (Level.WARN, True)
    assert f"lists {listed} images" in one.text


def test_what_is_in_a_full_list_is_there() -> None:
    assert found(REMOTE, REMOTE, listed=LISTED_AT_MOST).level is Level.PASS


def test_each_node_speaks_for_itself() -> None:
    nodes = (NodeImages("a", "a", (REMOTE,), 5), NodeImages("b", "b", PAUSE, 5))
    told = judge(REMOTE, "IfNotPresent", nodes)
    assert [(one.host, one.level) for one in told] == [("a", Level.PASS), ("b", Level.WARN)]


def test_i4_no_node_at_all_is_unknown() -> None:
    (one,) = judge(REMOTE, "IfNotPresent", ())
    assert (one.level, one.unknown) == (Level.FAIL, True)


@pytest.mark.parametrize(
    "image",
    [
        "",
        "Load:1",
        "a b",
        "x:",
        "registry.example/",
        "registry.example//load:1",
        "registry.example/load:a b",
        "registry.example/load:-1",
        "registry.example/load@1",
        "registry.example/load@",
        "https://registry.example/load:1",
    ],
)
def test_what_is_no_name_of_an_image_fails_once(image: str) -> None:
    nodes = (NodeImages("a", "a", PAUSE, 5), NodeImages("b", "b", PAUSE, LISTED_AT_MOST))
    (one,) = judge(image, "IfNotPresent", nodes)
    assert (one.level, one.unknown, one.host) == (Level.FAIL, False, "")
    assert repr(image) in one.text
    assert one.remedy.startswith("stressor_load_image: ")


@pytest.mark.parametrize("image", ["a__b--c/e_f.g:V1_2.3-x", "[fd00::1]:5000/load:1", "r.io/x:1"])
def test_odd_names_are_names(image: str) -> None:
    assert found(image, image).level is Level.PASS
