"""Drafts: what is written is what is read, whatever it is called; guesses say that they are."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stressor.config.distros import Distro, distro_of
from stressor.config.draft import Draft, inventory_text, read_back, settings_text
from stressor.config.draft_hosts import DraftHost
from stressor.config.draft_values import cluster_name, readable
from stressor.config.draft_yaml import comment, scalar
from stressor.config.hostlist import name_flaw
from stressor.config.layers import KEY_NAMES, ConfigFile, Layer, read_file
from stressor.config.yamlfile import parse_yaml
from stressor.errors import ConfigError
from stressor.model import Inventory, Role

UID = "3f2a9c1e-0000-4000-8000-000000000001"
CP = frozenset({Role.CONTROL_PLANE})
BOTH = frozenset({Role.CONTROL_PLANE, Role.WORKER})
WORKER = frozenset({Role.WORKER})
HOSTILE = (
    "yes", "No", "null", "~", "1e3", "0x1f", "0o17", "1.5", ".inf", "2001-01-01", "12:30:45", "=",
    "-", "- a", "? a", "a: b", "a #b", "#a", "&a", "*a", "!a", "!!int", "%a", "@a", "`a", "|", ">",
    "{a}", "'", '"', "\\", "a\\nb", "true", "on", "ünï", "名前", "😀", "...", "---", "_1", "1_000",
)  # fmt: skip


def cp(name: str = "cp1", address: str = "192.0.2.1", /, **more: object) -> DraftHost:
    return DraftHost(name, address, CP, etcd=True, apiserver=True, variables=more)


def draft(*hosts: DraftHost, **more: object) -> Draft:
    return replace(Draft("c", hosts or (cp(),)), **more)  # type: ignore[arg-type]


def read(one: Draft) -> Inventory:
    return read_back(one, inventory_text(one), Path("/d"))


def told(one: Draft) -> str:
    """The text with its comments on one line."""
    return " ".join(inventory_text(one).replace("#", " ").split())


def test_a_draft_is_the_inventory_that_was_meant() -> None:
    one = draft(
        cp(ansible_user="ops", ansible_port=2222, ansible_become=True),
        DraftHost("w1", "192.0.2.2", WORKER),
        DraftHost("both", "2001:db8::1", BOTH, apiserver=True),
        DraftHost("m", "198.51.100.1", frozenset({Role.BYSTANDER})),
        distro=Distro.RKE2,
        kubeconfig="/k",
        context="ctx",
        uid=UID,
    )
    inventory = read(one)
    assert [(host.name, host.roles) for host in inventory.hosts] == [
        ("cp1", CP),
        ("both", BOTH),
        ("w1", WORKER),
        ("m", frozenset({Role.BYSTANDER})),
    ]
    first = inventory.host("cp1")
    (route,) = first.routes
    assert (route.address, route.port, route.user, first.become) == ("192.0.2.1", 2222, "ops", True)
    assert first.apiserver_url == "https://192.0.2.1:6443"
    assert inventory.host("both").apiserver_url == "https://[2001:db8::1]:6443"
    assert inventory.host("w1").apiserver_url is None
    assert (inventory.kubeconfig_path, inventory.context, inventory.cluster_uid) == (
        "/k",
        "ctx",
        UID,
    )


@pytest.mark.parametrize(
    ("distro", "folder"),
    [
        (Distro.KUBEADM, "/var/lib/etcd"),
        (Distro.RKE2, "/var/lib/rancher/rke2/server/db/etcd"),
        (Distro.K3S, "/var/lib/rancher/k3s/server/db/etcd"),
    ],
)
def test_a_distribution_is_a_guess_that_says_so(distro: Distro, folder: str) -> None:
    one = draft(distro=distro, distro_reason="kubelet v1")
    host = read(one).host("cp1")
    assert (host.etcd_data_dir, host.etcd_metrics_url) == (folder, "http://127.0.0.1:2381/metrics")
    said = f"Guesses: where {distro} keeps an etcd (kubelet v1). As the host itself sees it."
    assert f"{said} Preflight verifies them." in told(one)


def test_i4_an_unknown_distribution_is_no_kubeadm() -> None:
    one = draft(distro_reason="no node was seen")
    host = read(one).host("cp1")
    assert (host.etcd_data_dir, host.etcd_metrics_url) == (None, None)
    assert "Where etcd is: no node was seen." in inventory_text(one)


def test_where_not_every_host_has_an_etcd_the_guess_stands_with_those_that_have() -> None:
    one = draft(cp(), replace(cp("cp2", "192.0.2.2"), etcd=False), distro=Distro.K3S)
    found = read(one)
    assert found.host("cp1").etcd_data_dir == "/var/lib/rancher/k3s/server/db/etcd"
    assert found.host("cp2").etcd_data_dir is None


def test_a_source_that_knows_where_its_etcd_is_is_not_guessed_over() -> None:
    own = {"etcd_data_dir": "/data", "etcd_metrics_url": "http://127.0.0.1:9/metrics"}
    one = draft(cp(**own), distro=Distro.KUBEADM)
    host = read(one).host("cp1")
    assert (host.etcd_data_dir, host.etcd_metrics_url) == tuple(own.values())
    assert "Guesses" not in inventory_text(one)


def test_nobodys_answer_about_bystanders_is_invented() -> None:
    text = inventory_text(draft())
    assert "# QUESTION" in text
    assert "    # example: stressor_bystanders_none:" in text
    assert read(draft()).bystanders_none_reason is None
    answered = draft(carried={"stressor_bystanders_none": "its own: disks"})
    assert read(answered).bystanders_none_reason == "its own: disks"
    assert "QUESTION" not in inventory_text(answered)


def test_an_etcd_of_the_cluster_among_the_bystanders_answers_no_question() -> None:
    outside = DraftHost("etcd1", "192.0.2.9", frozenset({Role.BYSTANDER}), etcd=True)
    one = draft(replace(cp(), etcd=False), outside, distro=Distro.KUBEADM)
    assert one.bystanders_asked
    assert read(one).host("etcd1").etcd_data_dir == "/var/lib/etcd"
    assert read(one).host("cp1").etcd_data_dir is None


def test_i4_a_cluster_that_is_not_pinned_says_why_and_what_to_type() -> None:
    one = draft(uid_problem="the API gave no answer (time-out)")
    text = inventory_text(one)
    assert read(one).cluster_uid is None
    assert "    # The cluster is not pinned: the API gave no answer (time-out).\n" in text
    assert "    # kubectl get ns kube-system -o jsonpath={.metadata.uid}\n" in text


def test_what_all_hosts_have_alike_stands_once() -> None:
    login = {"ansible_user": "ops", "ansible_port": 2222}
    one = draft(cp(**login), cp("cp2", "192.0.2.2", **login))
    assert inventory_text(one).count("ansible_user: ops\n") == 1
    assert {host.routes[0].user for host in read(one).hosts} == {"ops"}
    apart = draft(cp(**login), cp("cp2", "192.0.2.2"), login={"ansible_user": "root"})
    assert [host.routes[0].user for host in read(apart).hosts] == ["ops", "root"]
    assert [host.routes[0].port for host in read(apart).hosts] == [2222, 22]


def test_examples_mean_nothing_and_are_marked() -> None:
    for text in (inventory_text(draft()), settings_text(draft())):
        parse_yaml("t", text)
        samples = [line for line in text.splitlines() if "# example: " in line]
        assert samples
        for line in samples:
            # What an operator gets by taking the word out is a line of YAML.
            parse_yaml("t", line.strip().removeprefix("# example: "))


@pytest.mark.parametrize(
    "name", ["stressor_routes", "stressor_jumps", "stressor_fence", "stressor_hypervisor"]
)
def test_what_only_the_operator_knows_is_an_example_that_the_reader_takes(name: str) -> None:
    text = inventory_text(draft())
    (line,) = [one for one in text.splitlines() if one.startswith(f"# example: {name}:")]
    written = line.removeprefix("# example: ")
    filled = text.replace("      ansible_host:", f"      {written}\n      ansible_host:")
    host = read_back(draft(), filled, Path("/d")).host("cp1")
    assert (len(host.routes) > 1, host.routes[0].jumps, host.fence, host.hypervisor) != (
        False,
        (),
        (),
        None,
    )


def test_the_settings_name_the_inventory_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "stressor.yaml"
    path.write_text(settings_text(draft()))
    file = ConfigFile(Layer.PROJECT, path, exists=True)
    (setting,) = read_file(file, {}).items()
    assert (setting[0], setting[1].value) == ("inventory", str(tmp_path / "inventory.yaml"))


def test_every_setting_is_an_example_that_its_reader_takes(tmp_path: Path) -> None:
    path = tmp_path / "stressor.yaml"
    path.write_text(settings_text(draft(distro=Distro.RKE2)).replace("# example: ", ""))
    given = read_file(ConfigFile(Layer.PROJECT, path, exists=True), {})
    assert sorted(given) == sorted(KEY_NAMES)
    assert given["election_timeout"].value == 5.0
    assert "# example: election_timeout: 1s\n" in settings_text(draft())


@pytest.mark.parametrize("word", HOSTILE)
def test_every_word_is_text(word: str) -> None:
    assert parse_yaml("t", f"{scalar(word)}: [{scalar(word)}]").data == {word: [word]}


@given(st.text(), st.text())
def test_any_text_stays_what_it_is(key: str, value: str) -> None:
    written = f"{scalar(f'k{key}')}: {{v: [{scalar(value)}, 1, true]}}"
    assert parse_yaml("t", written).data == {f"k{key}": {"v": [value, 1, True]}}


@given(st.text())
def test_a_comment_never_becomes_a_line(text: str) -> None:
    lines = "\n".join(comment(text, 2))
    assert parse_yaml("t", f"a: 1\n{lines}\nb: 2\n").data == {"a": 1, "b": 2}


names = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=30)).filter(
    lambda name: name_flaw(name) is None
)
words = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1)).filter(
    lambda word: word.strip() == word and not any(sign in word for sign in ("{{", "{%", "{#"))
)


@settings(deadline=None)
@given(
    hosts=st.lists(names, min_size=1, max_size=4, unique=True),
    user=words,
    context=words,
    fence=st.lists(words, min_size=1),
    notes=st.lists(st.text(), max_size=2),
)
def test_any_host_list_is_read_as_it_was_meant(
    hosts: list[str], user: str, context: str, fence: list[str], notes: list[str]
) -> None:
    one = draft(
        *(
            replace(
                cp(name, f"192.0.2.{number}", ansible_user=user, stressor_fence=fence),
                roles=BOTH if number % 2 else WORKER,
                notes=tuple(notes),
            )
            for number, name in enumerate(hosts, start=1)
        ),
        context=context,
        sources=tuple(notes),
        left_out=tuple(notes),
        uid_problem="".join(notes),
        distro=Distro.KUBEADM,
        unlisted=(DraftHost("".join(notes), "", CP),),
    )
    inventory = read(one)
    assert inventory.context == context
    found = {host.name: (host.routes[0].address, host.routes[0].user) for host in inventory.hosts}
    assert found == {name: (f"192.0.2.{n}", user) for n, name in enumerate(hosts, start=1)}
    assert {host.fence for host in inventory.hosts} == {tuple(fence)}


def test_a_draft_that_would_be_refused_is_never_text() -> None:
    twice = draft(cp(), cp("cp2"))
    with pytest.raises(ConfigError, match=r"\(draft, not written\):\d+: hosts `cp1` and"):
        read(twice)


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        (["v1.34.4"], Distro.KUBEADM),
        (["v1.34.4+rke2r1", "v1.34.3+rke2r2"], Distro.RKE2),
        (["v1.34.4+k3s1"], Distro.K3S),
        (["v1.34.4", "v1.34.4+k3s1"], None),
        (["v1.34.4-eks-1a2b3c"], None),
        (["v1.27.0+1a2b3c4"], None),
        (["", "v1.34.4"], None),
        ([], None),
    ],
)
def test_kubelets_say_whose_they_are(versions: list[str], found: Distro | None) -> None:
    assert distro_of(versions) is found


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("staging-1", "staging-1"),
        ("Prod_EU/1", "prod-eu-1"),
        ("default", "default-3f2a9c1e"),
        ("kubernetes", "kubernetes-3f2a9c1e"),
        ("x" * 80, "x" * 63),
        ("." + "a" * 62 + "-b", "a" * 62),
    ],
)
def test_a_cluster_gets_a_name_that_can_be_a_files(told: str, name: str) -> None:
    found, _ = cluster_name(told, UID)
    assert found == name
    assert readable((("x", "stressor_cluster", found),)) == {"stressor_cluster": name}


@pytest.mark.parametrize("told", ["default", "___", None])
def test_a_name_that_says_nothing_is_asked_for(told: str | None) -> None:
    with pytest.raises(ConfigError, match="--cluster NAME"):
        cluster_name(told, None)


def test_what_was_typed_is_refused_by_its_option() -> None:
    with pytest.raises(ConfigError) as error:
        readable((("--user", "ansible_user", "{{ u }}"), ("--key", "ansible_port", "x")))
    assert [one.split(":")[0] for one in error.value.mistakes] == ["--user", "--key"]
    with pytest.raises(ConfigError, match="begins or ends with a space"):
        readable((("context", "stressor_context", " c"),))
