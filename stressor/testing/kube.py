"""A Kubernetes API in memory: Jobs make pods, preconditions bind, faults are scripted.

`FakeKube` is the real verbs over this API, so that what passes with it can fail on a real server
only where the server itself behaves otherwise; the contract suite runs against both.
"""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stressor.errors import KubeError
from stressor.kube.base import AccessQuestion
from stressor.kube.transport import Request, Response
from stressor.kube.verbs import ApiKube
from stressor.testing.access import question_of, reviewed

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next `times` requests of `method` whose path contains `path`.

    `status` 0: no answer comes (KubeError); with `lands`, the request takes effect all the same.
    """

    method: str
    path: str
    status: int = 0
    times: int = 1
    lands: bool = False

    def matches(self, request: Request) -> bool:
        """Whether it happens to `request`."""
        return self.method == request.method and self.path in request.path


class MemoryApi:
    """The part of the API that stressor uses, as a `Transport`. Requests are answered one by one.

    Objects are kept by path. `unix_s` is the server's clock; tests move it. `denied` are the
    (verb, resource) that this login may not do, a subresource behind a slash; `unsure` are those
    that the authorizer errs about. `refusals` (status and message) and `warnings` are what
    admission says to new objects of a kind. `groups` are the API's groups.
    """

    def __init__(self, unix_s: float = 1_800_000_000.0) -> None:
        self.unix_s = unix_s
        self.requests: list[Request] = []
        self.objects: dict[str, Object] = {}
        self.logs: dict[tuple[str, str], bytes] = {}
        self.kept: set[str] = set()
        self.denied: set[tuple[str, str]] = set()
        self.unsure: set[tuple[str, str]] = set()
        self.refusals: dict[str, tuple[int, str]] = {}
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.groups = {"authorization.k8s.io", "batch", "coordination.k8s.io", "storage.k8s.io"}
        self._faults: list[Fault] = []
        self._lock = threading.RLock()
        self._versions = itertools.count(1)
        for name in ("kube-system", "default"):
            self._add("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": name}})

    def fail(self, fault: Fault) -> None:
        """Let `fault` happen; faults are used up in the order given."""
        self._faults.append(fault)

    def keep(self, kind: str) -> None:
        """From now on, deleted objects of `kind` stay, terminating, as with a stuck finalizer."""
        self.kept.add(kind)

    def add(self, path: str, thing: Object) -> None:
        """Put an object into the collection at `path`, past every admission."""
        self._add(path, thing)

    def add_node(
        self,
        name: str,
        *,
        ready: str = "True",
        control_plane: bool = False,
        images: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        """Add a node; `ready` is its condition's status, `images` are the names of each image."""
        labels = {"kubernetes.io/hostname": name}
        if control_plane:
            labels["node-role.kubernetes.io/control-plane"] = ""
        node: Object = {
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "allocatable": {"cpu": "1900m", "memory": "4Gi"},
                "nodeInfo": {"kubeletVersion": "v1.36.0"},
                "images": [{"names": list(names), "sizeBytes": 1} for names in images],
            },
        }
        self._add("/api/v1/nodes", node)

    def finish(self, job_name: str, *, exit_code: int, log: str = "", reason: str = "") -> None:
        """End the load container of a Job's pod, and the Job with it."""
        for pod in self._pods_of(job_name):
            ended = {"exitCode": exit_code, "reason": reason or _ended(exit_code)}
            pod["status"] = {
                "phase": "Failed" if exit_code else "Succeeded",
                "containerStatuses": [{"name": "load", "state": {"terminated": ended}}],
            }
            key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            self.logs[key] = log.encode()
        for job in self._named("Job", job_name):
            condition = {"type": "Failed" if exit_code else "Complete", "status": "True"}
            counted = {"failed": 1} if exit_code else {"succeeded": 1}
            job["status"] = {"active": 0, **counted, "conditions": [condition]}

    def send(self, request: Request, *, deadline_s: float) -> Response:
        """As `Transport.send`."""
        with self._lock:
            return self._send(request, deadline_s)

    def _send(self, request: Request, deadline_s: float) -> Response:
        self.requests.append(request)
        fault = self._next_fault(request)
        if fault is None:
            return self._answer(request)
        if fault.lands:
            self._answer(request)
        if fault.status == 0:
            raise KubeError(f"{request}: no answer within {deadline_s:g} s")
        return self._response(fault.status, _status(fault.status, "scripted"))

    def _next_fault(self, request: Request) -> Fault | None:
        for index, fault in enumerate(self._faults):
            if fault.matches(request):
                left = fault.times - 1
                rest = [Fault(fault.method, fault.path, fault.status, left, fault.lands)]
                self._faults[index : index + 1] = rest if left else []
                return fault
        return None

    def _response(self, status: int, body: Object) -> Response:
        return Response(status, json.dumps(body).encode(), self.unix_s)

    def _answer(self, request: Request) -> Response:
        question = question_of(request)
        if question is not None and self._may(question) is not True:
            return self._response(403, _status(403, f"forbidden: {question}"))
        if request.path.endswith("/log"):
            return self._log(request)
        methods: dict[str, Callable[[Request], tuple[int, Object]]] = {
            "GET": self._get,
            "POST": self._post,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }
        status, body = methods[request.method](request)
        posted = request.method == "POST" and status == 201
        told = self.warnings.get(body.get("kind", ""), ()) if posted else ()
        return Response(status, json.dumps(body).encode(), self.unix_s, told)

    def _may(self, question: AccessQuestion) -> bool | None:
        """None: the authorizer errs."""
        resource = "/".join(filter(None, (question.resource, question.subresource)))
        if (question.verb, resource) in self.unsure:
            return None
        return (question.verb, resource) not in self.denied

    def _log(self, request: Request) -> Response:
        parts = request.path.split("/")
        text = self.logs.get((parts[4], parts[6]))
        if text is None:
            return self._response(404, _status(404, "no such pod"))
        return Response(200, text[: int(request.query["limitBytes"])], self.unix_s)

    def _get(self, request: Request) -> tuple[int, Object]:
        if request.path in self.objects:
            return 200, self.objects[request.path]
        if request.path == "/apis":
            groups = [{"name": name} for name in sorted(self.groups)]
            return 200, {"kind": "APIGroupList", "groups": groups}
        question = question_of(request)
        served = question is None or question.group in {"", *self.groups}
        if not served or not _is_collection(request.path):
            return 404, _status(404, f"{request.path} not found")
        start = int(request.query.get("continue", "0"))
        end = start + int(request.query.get("limit", "500"))
        found = [thing for thing in self._in(request.path) if _selected(thing, request)]
        following = {"continue": str(end)} if end < len(found) else {}
        return 200, {"kind": "List", "metadata": following, "items": found[start:end]}

    def _post(self, request: Request) -> tuple[int, Object]:
        body: Object = json.loads(json.dumps(request.body))
        if body["kind"] == "SelfSubjectAccessReview":
            return 201, reviewed(body, self._may)
        if body["kind"] in self.refusals:
            status, message = self.refusals[body["kind"]]
            return status, _status(status, message)
        if f"{request.path}/{body['metadata']['name']}" in self.objects:
            return 409, _status(409, "already exists")
        namespace = body["metadata"].get("namespace")
        if namespace and f"/api/v1/namespaces/{namespace}" not in self.objects:
            return 404, _status(404, f"namespace {namespace} not found")
        if request.query.get("dryRun") == "All":
            return 201, body
        return 201, self._add(request.path, body)

    def _put(self, request: Request) -> tuple[int, Object]:
        current = self.objects.get(request.path)
        if current is None:
            return 404, _status(404, "not found")
        body: Object = json.loads(json.dumps(request.body))
        if not _bound(body["metadata"], current):
            return 409, _status(409, "the object has been modified")
        body["metadata"] |= {key: current["metadata"][key] for key in ("uid", "resourceVersion")}
        if body != current:
            # As in a real server, writing what is there already makes no new version.
            body["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[request.path] = body
        return 200, body

    def _patch(self, request: Request) -> tuple[int, Object]:
        current = self.objects.get(request.path)
        body: Mapping[str, Any] = request.body or {}
        if current is None:
            return 404, _status(404, "not found")
        if not _bound(body.get("metadata") or {}, current):
            return 409, _status(409, "Precondition failed: UID in precondition")
        current["spec"].update(body["spec"])
        current["metadata"]["resourceVersion"] = str(next(self._versions))
        if current["spec"].get("suspend"):
            self._remove_pods(current["metadata"]["name"])
            current["status"] = {"conditions": [{"type": "Suspended", "status": "True"}]}
        return 200, current

    def _delete(self, request: Request) -> tuple[int, Object]:
        current = self.objects.get(request.path)
        if current is None:
            return 404, _status(404, "not found")
        preconditions: Any = (request.body or {}).get("preconditions") or {}
        if not _bound(preconditions, current):
            return 409, _status(409, "Precondition failed")
        self._remove(request.path)
        return 200, {"kind": "Status", "status": "Success"}

    def _add(self, path: str, thing: Object) -> Object:
        version = str(next(self._versions))
        thing["metadata"] |= {"uid": f"uid-{version}", "resourceVersion": version}
        self.objects[f"{path}/{thing['metadata']['name']}"] = thing
        if thing["kind"] == "Namespace":
            account = {"kind": "ServiceAccount", "metadata": {"name": "default"}}
            self._add(f"{path}/{thing['metadata']['name']}/serviceaccounts", account)
        elif thing["kind"] == "ResourceQuota":
            thing["status"] = {"hard": thing["spec"]["hard"]}
        elif thing["kind"] == "Job":
            thing["status"] = {"active": 1}
            self._start_pod(thing)
        return thing

    def _start_pod(self, job: Object) -> None:
        meta, template = job["metadata"], job["spec"]["template"]
        labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": meta["name"]}
        node = template["spec"]["nodeSelector"]["kubernetes.io/hostname"]
        pod: Object = {
            "kind": "Pod",
            "metadata": {
                "name": f"{meta['name']}-pod",
                "namespace": meta["namespace"],
                "labels": labels,
            },
            "spec": {"nodeName": node},
            "status": {
                "phase": "Running",
                "containerStatuses": [{"name": "load", "state": {"running": {}}}],
            },
        }
        self.logs[meta["namespace"], pod["metadata"]["name"]] = b""
        self._add(f"/api/v1/namespaces/{meta['namespace']}/pods", pod)

    def _remove(self, path: str) -> None:
        """Delete, with what hangs on it: a Job's pods, a namespace's content."""
        thing = self.objects[path]
        if thing["kind"] in self.kept:
            thing["metadata"] |= {"deletionTimestamp": "2027-01-15T08:00:00Z"}
            return
        del self.objects[path]
        if thing["kind"] == "Job":
            self._remove_pods(thing["metadata"]["name"])
        elif thing["kind"] == "Namespace":
            name = thing["metadata"]["name"]
            for inner in [p for p in self.objects if f"/namespaces/{name}/" in p]:
                if inner in self.objects:
                    self._remove(inner)

    def _remove_pods(self, job_name: str) -> None:
        for pod in list(self._pods_of(job_name)):
            meta = pod["metadata"]
            self._remove(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")

    def _pods_of(self, job_name: str) -> Iterator[Object]:
        key = "batch.kubernetes.io/job-name"
        pods = (thing for thing in self.objects.values() if thing["kind"] == "Pod")
        return (pod for pod in pods if pod["metadata"].get("labels", {}).get(key) == job_name)

    def _named(self, kind: str, name: str) -> Iterator[Object]:
        things = (thing for thing in self.objects.values() if thing["kind"] == kind)
        return (thing for thing in things if thing["metadata"]["name"] == name)

    def _in(self, collection: str) -> list[Object]:
        """Everything of a collection, or of all namespaces' collections of that name."""
        group, _, plural = collection.rpartition("/")
        return [
            thing
            for path, thing in sorted(self.objects.items())
            if path.startswith(f"{group}/") and path.split("/")[-2] == plural
        ]


class FakeKube(ApiKube):
    """`Kube` in memory. Script it through `api`: nodes, ends of Jobs, faults, the clock."""

    def __init__(self, api: MemoryApi | None = None) -> None:
        self.api = MemoryApi() if api is None else api
        super().__init__(self.api)


def _ended(exit_code: int) -> str:
    return "Error" if exit_code else "Completed"


def _status(code: int, message: str) -> Object:
    return {"kind": "Status", "status": "Failure", "code": code, "message": message}


def _is_collection(path: str) -> bool:
    """Whether `path` names a collection: it ends in a plural that is not an object's name."""
    parts = path.split("/")
    inside = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts[:-1] else parts[-1:]
    return len(inside) == 1


def _selected(thing: Object, request: Request) -> bool:
    """By labels (`key`, or `key=value`), and by fields (`path!=value` only)."""
    labels = thing["metadata"].get("labels", {})
    key, equals, value = request.query.get("labelSelector", "").partition("=")
    fields = (one.split("!=") for one in request.query.get("fieldSelector", "").split(",") if one)
    return (
        (not key or key in labels)
        and (not equals or labels.get(key) == value)
        and all(_field(thing, path) != unwanted for path, unwanted in fields)
    )


def _field(thing: Object, path: str) -> object:
    found: Any = thing
    for part in path.split("."):
        found = found.get(part, {})
    return found


def _bound(wanted: Mapping[str, Any], current: Object) -> bool:
    keys = ("uid", "resourceVersion")
    return all(wanted.get(key) in (None, current["metadata"].get(key)) for key in keys)
