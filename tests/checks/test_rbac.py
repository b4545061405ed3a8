"""The list of accesses against every request that the adapter makes, and what is said of a gap."""

import ast
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import stressor.kube
from stressor.checks import rbac
from stressor.checks.base import Level
from stressor.checks.rbac import Answered, Need, judge, needed
from stressor.kube.base import AccessQuestion, Kube
from stressor.kube.transport import Request
from stressor.model import Step
from stressor.testing.access import question_of
from stressor.testing.kube import FakeKube, MemoryApi
from stressor.workloads.job import job_manifest, namespace_manifests
from stressor.workloads.needs import Needs

RUN, NAMESPACE = "r1", "stressor-r1"
KUBE = Path(stressor.kube.__file__).parent
EVERYTHING = needed(NAMESPACE, storage_class=True, cluster_quotas=True)
NOT_A_RESOURCE = {"/apis"}
"""Granted to every login by system:discovery."""


def job() -> dict[str, object]:
    return job_manifest(
        run=RUN,
        namespace=NAMESPACE,
        image="i",
        step=Step(0, "p", "cpu", ("w-1",), {}, 0.0, 5.0, 0.0, 30.0, ()),
        node="w-1",
        argv=("true",),
        start_by_unix_s=1,
        end_by_unix_s=2,
        deadline_s=30.0,
        needs=Needs(),
    )


def manifests() -> tuple[dict[str, object], ...]:
    return namespace_manifests(run=RUN, namespace=NAMESPACE, jobs=1, host_path=False)


def take(kube: Kube, api: MemoryApi) -> Any:
    return kube.acquire_lease(
        holder="ann", run=RUN, abort_command="a", expires_s=30, deadline_s=1.0
    )


def locked(kube: Kube, api: MemoryApi) -> None:
    """Taken, renewed, taken over by another holder after its end, and given back."""
    kube.renew_lease(take(kube, api), expires_s=30, deadline_s=1.0)
    api.unix_s += 60
    kube.release_lease(take(kube, api), deadline_s=1.0)
    kube.read_lease(deadline_s=1.0)


def twice(call: Callable[[], object]) -> None:
    """What exists already is read, to see whose it is."""
    call()
    call()


def log(kube: Kube) -> None:
    (pod,) = kube.pods(RUN, deadline_s=1.0)
    kube.pod_log(pod.namespace, pod.name, limit_bytes=1, deadline_s=1.0)


USES: dict[str, Callable[[Kube, MemoryApi], object]] = {
    "cluster_uid": lambda kube, _: kube.cluster_uid(deadline_s=1.0),
    "nodes": lambda kube, _: kube.nodes(deadline_s=1.0),
    "api_groups": lambda kube, _: kube.api_groups(deadline_s=1.0),
    "may": lambda kube, _: kube.may((AccessQuestion("list", "pods"),), deadline_s=1.0),
    "dry_run": lambda kube, _: kube.dry_run((*manifests(), job()), deadline_s=1.0),
    "node_images": lambda kube, _: kube.node_images(deadline_s=1.0),
    "node_requests": lambda kube, _: kube.node_requests(deadline_s=1.0),
    "storage_classes": lambda kube, _: kube.storage_classes(deadline_s=1.0),
    "quotas": lambda kube, _: kube.quotas(deadline_s=1.0),
    "cluster_quotas": lambda kube, _: kube.cluster_quotas({}, deadline_s=1.0),
    "limit_ranges": lambda kube, _: kube.limit_ranges(deadline_s=1.0),
    "apply_namespace": lambda kube, _: twice(
        lambda: kube.apply_namespace(manifests(), deadline_s=1.0)
    ),
    "create_job": lambda kube, _: twice(lambda: kube.create_job(job(), deadline_s=1.0)),
    "run_namespaces": lambda kube, _: kube.run_namespaces(deadline_s=1.0),
    "jobs": lambda kube, _: kube.jobs(RUN, deadline_s=1.0),
    "pods": lambda kube, _: kube.pods(RUN, deadline_s=1.0),
    "pod_log": lambda kube, _: log(kube),
    "leftovers": lambda kube, _: kube.leftovers(RUN, deadline_s=1.0),
    "suspend_jobs": lambda kube, _: kube.suspend_jobs(RUN, deadline_s=1.0),
    "acquire_lease": locked,
    "renew_lease": locked,
    "release_lease": locked,
    "read_lease": locked,
    "delete_run": lambda kube, _: delete_all(kube),
}
"""Each verb, so that it makes all the requests that it can; in an order in which they find what
they need."""


def delete_all(kube: Kube) -> None:
    """With a pod of a Job that is not suspended: it has to be deleted, too."""
    kube.delete_run(RUN, deadline_s=1.0)
    kube.apply_namespace(manifests(), deadline_s=1.0)
    kube.create_job(job(), deadline_s=1.0)
    kube.delete_run(RUN, deadline_s=1.0)


def requests_of_every_verb() -> list[Request]:
    api = MemoryApi()
    api.add_node("w-1")
    api.groups.add("quota.openshift.io")
    kube = FakeKube(api)
    for use in USES.values():
        use(kube, api)
    return api.requests


def covers(need: Need, asked: AccessQuestion) -> bool:
    """As RBAC decides: an empty namespace or name in the list is a grant for all of them."""
    same = all(
        getattr(need, part) == getattr(asked, part)
        for part in ("verb", "resource", "group", "subresource")
    )
    return same and need.namespace in ("", asked.namespace) and need.name in ("", asked.name)


def test_every_verb_of_the_seam_is_used_here() -> None:
    verbs = {name for name in vars(Kube) if not name.startswith("_")}
    assert set(USES) == verbs


def test_every_request_of_the_adapter_is_in_the_list() -> None:
    for request in requests_of_every_verb():
        asked = question_of(request)
        if asked is None:
            assert request.path in NOT_A_RESOURCE
            continue
        assert any(covers(need, asked) for need in EVERYTHING), request


def test_the_list_asks_for_nothing_that_no_request_needs() -> None:
    asked = [a for a in map(question_of, requests_of_every_verb()) if a is not None]
    for need in EVERYTHING:
        assert any(covers(need, one) for one in asked), need


@pytest.mark.parametrize("need", EVERYTHING, ids=str)
def test_without_any_one_of_them_a_request_is_not_in_the_list(need: Need) -> None:
    """No entry is covered by another: the list fails the first test when it is one short."""
    rest = [one for one in EVERYTHING if one != need]
    asked = [a for a in map(question_of, requests_of_every_verb()) if a is not None]
    assert not all(any(covers(one, a) for one in rest) for a in asked)


def request_sites() -> set[tuple[str, int]]:
    """(file, line) of each place in the adapter that makes a request."""
    return {
        (path.name, node.lineno)
        for path in KUBE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Request"
    }


def test_no_request_of_the_adapter_was_left_out_of_this_test() -> None:
    """A new request in a branch that `USES` does not come through would be unknown to the list."""
    seen: set[tuple[str, int]] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Request.__init__.__code__ and frame.f_back:
            seen.add((Path(frame.f_back.f_code.co_filename).name, frame.f_back.f_lineno))

    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        requests_of_every_verb()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    sites = request_sites()
    assert len(sites) > 10
    assert sites - seen == set()


@pytest.mark.parametrize("storage_class", [True, False])
@pytest.mark.parametrize("cluster_quotas", [True, False])
def test_what_no_phase_needs_is_not_asked_for(*, storage_class: bool, cluster_quotas: bool) -> None:
    found = needed(NAMESPACE, storage_class=storage_class, cluster_quotas=cluster_quotas)
    resources = {need.resource for need in found}
    assert ("storageclasses" in resources) is storage_class
    assert ("clusterresourcequotas" in resources) is cluster_quotas


def test_a_namespace_that_is_not_chosen_yet_is_any() -> None:
    found = needed("", storage_class=False, cluster_quotas=False)
    names = {need.namespace for need in found}
    assert names == {"", "kube-system"}
    assert Need("delete", "namespaces") in found


def test_a_need_is_a_question_word_for_word() -> None:
    for need in EVERYTHING:
        assert astuple(AccessQuestion(*astuple(need)[:-1])) == astuple(need)[:-1]


def answers(
    *gaps: tuple[str, str], allowed: bool | None = False, reason: str = ""
) -> Iterator[Answered]:
    for need in EVERYTHING:
        gap = (need.verb, need.resource) in gaps
        yield Answered(need, allowed if gap else True, reason if gap else "")


def test_all_granted_passes() -> None:
    (found,) = judge(tuple(answers()))
    assert (found.level, found.check) == (Level.PASS, rbac.NAME)
    assert str(len(EVERYTHING)) in found.text


@pytest.mark.parametrize("need", [n for n in EVERYTHING if not n.looks], ids=str)
def test_one_access_short_is_a_failure_that_names_it(need: Need) -> None:
    (found,) = judge([Answered(one, one != need) for one in EVERYTHING])
    assert found.level is Level.FAIL
    assert f"{need.verb} {need.resource}" in found.text
    assert f"--verb={need.verb} --resource={need.resource}" in found.remedy


def test_the_remedy_can_be_typed() -> None:
    (found,) = judge(tuple(answers(("create", "jobs"), ("delete", "jobs"))))
    assert found.text == "may not create, delete jobs.batch in namespace stressor-r1"
    assert found.remedy.startswith(
        "kubectl create clusterrole stressor-jobs --verb=create,delete --resource=jobs.batch"
    )


def test_a_subresource_is_written_as_kubectl_writes_it() -> None:
    (found,) = judge([Answered(n, not n.subresource) for n in EVERYTHING])
    assert found.text == "may not get pods/log in namespace stressor-r1"
    assert "clusterrole stressor-pods-log --verb=get --resource=pods/log" in found.remedy


def test_what_only_preflight_looks_at_is_a_warning() -> None:
    (found,) = judge(tuple(answers(("list", "limitranges"))))
    assert (found.level, found.text) == (Level.WARN, "may not list limitranges")


def test_i4_an_unknown_answer_is_a_failure_that_says_so() -> None:
    gaps = (("delete", "pods"), ("list", "nodes"))
    (found,) = judge(tuple(answers(*gaps, allowed=None, reason="webhook: refused")))
    assert (found.level, found.unknown) == (Level.FAIL, True)
    assert found.text == "unknown: may this login list nodes and 1 more: webhook: refused"
    assert found.remedy == "kubectl auth can-i list nodes --all-namespaces"


def test_i4_no_answer_at_all_is_a_failure() -> None:
    (found,) = judge(())
    assert (found.level, found.unknown) == (Level.FAIL, True)


def test_a_login_short_of_one_access_is_told_by_the_api() -> None:
    """The whole way: the list, the reviews, the judgement."""
    api = MemoryApi()
    api.denied.add(("delete", "pods"))
    asked = tuple(AccessQuestion(*astuple(need)[:-1]) for need in EVERYTHING)
    told = FakeKube(api).may(asked, deadline_s=5.0)
    pairs = zip(EVERYTHING, told, strict=True)
    (found,) = judge([Answered(need, access.allowed, access.reason) for need, access in pairs])
    assert found.text == "may not delete pods in namespace stressor-r1"
