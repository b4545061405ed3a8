"""The only builder of load: deadlines, marks, and nothing that restarts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stressor.model import Step
from stressor.workloads import WORKLOADS, workload
from stressor.workloads.job import (
    Manifest,
    job_manifest,
    job_name,
    lease_manifest,
    namespace_manifests,
)
from stressor.workloads.needs import Needs

STEP = Step(3, "disk ramp", "disk", ("w-1",), {}, 0.0, 10.0, 0.0, 60.0, ())


def built(**changes: Any) -> Any:
    """A Job with good arguments, but for `changes`."""
    arguments: dict[str, Any] = {
        "run": "r1",
        "namespace": "stressor-r1",
        "image": "stressor-load:1",
        "step": STEP,
        "node": "w-1",
        "argv": ("fio", "--version"),
        "start_by_unix_s": 1000,
        "end_by_unix_s": 1060,
        "deadline_s": 59.2,
        "needs": Needs(),
    }
    return job_manifest(**(arguments | changes))


def pod(manifest: Any) -> Any:
    return manifest["spec"]["template"]["spec"]


def container(manifest: Any) -> Any:
    (only,) = pod(manifest)["containers"]
    return only


def test_i2_a_job_ends_by_its_own_clocks_and_never_starts_again() -> None:
    job = built()
    spec = job["spec"]
    assert job["kind"] == "Job"
    assert (spec["activeDeadlineSeconds"], pod(job)["activeDeadlineSeconds"]) == (60, 60)
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (0, 1, 1)
    assert pod(job)["restartPolicy"] == "Never"
    assert pod(job)["terminationGracePeriodSeconds"] <= 5
    assert "ttlSecondsAfterFinished" not in spec
    assert {"name": "STRESSOR_END_BY", "value": "1060"} in container(job)["env"]
    assert {"name": "STRESSOR_START_BY", "value": "1000"} in container(job)["env"]


def test_both_marks_are_there() -> None:
    job = built()
    assert {"name": "STRESSOR_RUN", "value": "r1"} in container(job)["env"]
    assert pod(job)["volumes"] == [
        {"name": "stressor-r1", "emptyDir": {"sizeLimit": str(16 * 1024 * 1024)}}
    ]
    assert container(job)["volumeMounts"] == [{"name": "stressor-r1", "mountPath": "/stressor"}]


def test_the_entry_point_runs_the_tool() -> None:
    assert container(built())["command"] == ["/usr/local/bin/stressor-entry", "fio", "--version"]


def test_job_and_pod_carry_run_and_step() -> None:
    job = built()
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert metadata["labels"] == {
            "app.kubernetes.io/name": "stressor",
            "stressor.dev/run": "r1",
            "stressor.dev/step": "3",
        }
        assert metadata["annotations"]["stressor.dev/node"] == "w-1"


def test_the_pod_is_restricted() -> None:
    job = built()
    assert pod(job)["enableServiceLinks"] is False
    assert pod(job)["automountServiceAccountToken"] is False
    assert pod(job)["nodeSelector"] == {"kubernetes.io/hostname": "w-1"}
    assert "tolerations" not in pod(job)
    assert pod(job)["securityContext"]["runAsNonRoot"] is True
    assert pod(job)["securityContext"]["runAsUser"] == 65534
    assert pod(job)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(job)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert container(job)["imagePullPolicy"] == "IfNotPresent"


def test_requests_and_limits_are_set() -> None:
    needs = Needs(cpu_limit_cores=2.5, memory_limit_bytes=1000)
    resources = container(built(needs=needs))["resources"]
    assert resources["limits"]["cpu"] == "2500m"
    assert resources["limits"]["memory"] == "1000"
    assert set(resources["requests"]) == {"cpu", "memory"}


def test_a_host_path_must_exist() -> None:
    job = built(needs=Needs(host_path="/var/scratch"))
    assert pod(job)["volumes"][1] == {
        "name": "scratch",
        "hostPath": {"path": "/var/scratch", "type": "Directory"},
    }
    assert container(job)["volumeMounts"][1] == {"name": "scratch", "mountPath": "/scratch"}


def test_a_storage_class_gives_each_pod_a_volume_that_goes_with_it() -> None:
    job = built(needs=Needs(storage_class="fast", claim_bytes=3 << 30))
    assert pod(job)["volumes"][1] == {
        "name": "scratch",
        "ephemeral": {
            "volumeClaimTemplate": {
                "metadata": {
                    "labels": {"app.kubernetes.io/name": "stressor", "stressor.dev/run": "r1"}
                },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "fast",
                    "resources": {"requests": {"storage": str(3 << 30)}},
                },
            }
        },
    }
    assert container(job)["volumeMounts"][1] == {"name": "scratch", "mountPath": "/scratch"}
    # The mark stays: it is what a guard knows the load by.
    assert pod(job)["volumes"][0]["name"] == "stressor-r1"


def test_scratch_has_one_place() -> None:
    with pytest.raises(ValueError, match="not both"):
        built(needs=Needs(host_path="/var/scratch", storage_class="fast"))


@pytest.mark.parametrize(
    "changes",
    [
        {"deadline_s": 0.0},
        {"deadline_s": float("inf")},
        {"deadline_s": float("nan")},
        {"end_by_unix_s": 1000},
        {"start_by_unix_s": 0},
        {"argv": ()},
        {"run": ""},
        {"run": "a=b"},
        {"run": "x" * 41},
    ],
)
def test_load_without_a_bound_or_a_name_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no command|needs a deadline|not a run id"):
        built(**changes)


@given(st.text(min_size=1, max_size=253), st.integers(0, 9999))
def test_names_are_short_and_distinct_for_any_node(node: str, step: int) -> None:
    name = job_name("r" * 40, step, node)
    assert len(name) <= 63
    assert name != job_name("r" * 40, step, node + "x")
    assert name != job_name("r" * 40, step + 1, node)


def kinds(manifests: tuple[Manifest, ...]) -> Any:
    return {m["kind"]: m for m in manifests}


def test_the_namespace_is_restricted_and_allows_jobs_only() -> None:
    made = kinds(namespace_manifests(run="r1", namespace="n", jobs=4, host_path=False))
    assert made["Namespace"]["metadata"]["labels"] == {
        "app.kubernetes.io/name": "stressor",
        "stressor.dev/run": "r1",
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    }
    hard = made["ResourceQuota"]["spec"]["hard"]
    assert (hard["count/jobs.batch"], hard["pods"]) == ("4", "4")
    assert hard["count/deployments.apps"] == hard["count/cronjobs.batch"] == "0"
    assert made["ResourceQuota"]["metadata"]["namespace"] == "n"


def test_only_a_host_path_lifts_the_security_level() -> None:
    made = kinds(namespace_manifests(run="r1", namespace="n", jobs=1, host_path=True))
    labels = made["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_the_lease_says_who_and_how_to_abort() -> None:
    lease: Any = lease_manifest(
        namespace="kube-system",
        holder="ann@desk",
        run="r1",
        abort_command="stressor abort --run r1",
        duration_s=60,
        acquired="2026-12-01T00:00:00.000000Z",
        renewed="2026-12-01T00:00:09.000000Z",
    )
    assert lease["spec"] == {
        "holderIdentity": "ann@desk",
        "leaseDurationSeconds": 60,
        "acquireTime": "2026-12-01T00:00:00.000000Z",
        "renewTime": "2026-12-01T00:00:09.000000Z",
    }
    assert lease["metadata"]["annotations"] == {
        "stressor.dev/run": "r1",
        "stressor.dev/abort-command": "stressor abort --run r1",
    }


@pytest.mark.parametrize("kind", [one.KIND for one in WORKLOADS])
def test_every_workload_makes_a_job_from_its_defaults(kind: str) -> None:
    one = workload(kind)
    job = built(argv=one.argv(one.DEFAULTS, 10.0), needs=one.needs(one.DEFAULTS))
    assert json.loads(json.dumps(job)) == job
    assert container(job)["command"][1] in ("stress-ng", "fio")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(KeyError):
        workload("cpuu")
