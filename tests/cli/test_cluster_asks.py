"""What preflight makes of an API: one line when it is silent, nothing more when it is another."""

from dataclasses import replace

import pytest

from stressor.checks.base import Level
from stressor.cli.cluster_asks import NAMES, ClusterAsks
from stressor.errors import KubeError
from stressor.kube.base import Kube, KubeRefused
from stressor.model import Host, Inventory, Role, Route
from stressor.testing.kube import FakeKube

NODE = Host("node1", (Route("10.0.0.1"),), frozenset({Role.CONTROL_PLANE, Role.WORKER}))
SITE = Inventory("c", (NODE,), load_image="registry.example/load:1")


def asks(site: Inventory, *only: str) -> ClusterAsks:
    return ClusterAsks(site, None, lambda name: not only or name in only)


class Silent(FakeKube):
    """An API whose first answer is an error."""

    def __init__(self, error: KubeError) -> None:
        super().__init__()
        self.error = error

    def cluster_uid(self, *, deadline_s: float) -> str:
        raise self.error


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (KubeError("nobody listens"), "check stressor_kubeconfig"),
        (KubeRefused("Unauthorized", 401), "log in again"),
        (KubeRefused("Forbidden", 403), "check stressor_kubeconfig"),
    ],
)
def test_i4_a_silent_api_makes_one_line(error: KubeError, remedy: str) -> None:
    found = asks(SITE).of(Silent(error))
    assert [(one.check, one.level) for one in found] == [
        ("pin", Level.FAIL),
        ("api", Level.SKIP),
    ]
    assert found[0].unknown
    assert str(error) in found[0].text
    assert remedy in found[0].remedy


def test_another_cluster_is_asked_nothing_more() -> None:
    site = replace(SITE, cluster_uid="00000000-0000-4000-8000-000000000000")
    found = asks(site, "nodes").of(FakeKube())
    assert [one.check for one in found] == ["pin", "api"]
    assert found[0].level is Level.FAIL


def test_the_right_cluster_is_asked_everything_that_is_wanted() -> None:
    kube: Kube = FakeKube()
    site = replace(SITE, cluster_uid=kube.cluster_uid(deadline_s=1.0))
    found = asks(site).of(kube)
    assert {one.check for one in found} == set(NAMES) - {"access-path"}
    assert {one.check for one in asks(site, "rbac").of(kube)} == {"rbac"}
