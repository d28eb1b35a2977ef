# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes at once by one client; afterwards the node is as it was. The
figures beside bare containers are tests/bench/create's."""
import time
from concurrent.futures import ThreadPoolExecutor

import census

AT_ONCE = 24
REACHED_S = 2
POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "api.lab.test"}]}


def make_all(node):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = list(pool.map(lambda n: node.api.create(
            networkPolicy=POLICY, metadata={"number": str(n)},
            volumes=[{"name": "data", "mountPath": "/data", "pvc": {
                "claimName": f"many-{n}", "createIfNotExists": True,
                "deleteOnSandboxTermination": True}}]), range(AT_ONCE)))
    return [box["id"] for box in made]


def remove_all(node, boxes):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(node.api.delete, boxes))


def test_many_at_once_leave_nothing(node):
    remove_all(node, make_all(node))  # pools and caches have their size now
    before, roles = census.take(node), census.roles(node)
    boxes = make_all(node)
    assert {node.api.get(box)["status"]["state"] for box in boxes} == {"Running"}
    now = census.take(node)
    for kind in ("containers", "registrations", "policies", "records", "volumes"):
        assert len(now[kind] - before[kind]) == AT_ONCE, kind
    addresses = [a for box in boxes for a in node.registry()[box]["addresses"]]
    assert len(set(addresses)) == 2 * AT_ONCE
    ports = {node.registry()[box]["lockedAt"] for box in boxes}
    assert len(ports) == AT_ONCE and ports <= now["links"] - before["links"]
    assert node.docker.inside(boxes[-1], "curl", "-sS", "--max-time", "10",
                              "http://api.lab.test/hello").returncode == 0
    remove_all(node, boxes)
    census.settle(node, before)
    for role, (fds, kib) in census.roles(node).items():
        assert fds <= roles[role][0] + 2, (role, fds, roles)
        assert kib <= roles[role][1] + 1024, (role, kib, roles)


def test_each_is_reached_while_others_begin(node):
    """What awaits its port of the bridge holds nothing of those that have theirs."""
    def one(_):
        box = node.api.create()["id"]
        runs = time.monotonic()
        at = node.api.endpoint(box, 44772)
        status = node.api.reach(at["endpoint"], "/ping", at["headers"])[0]
        return box, status, time.monotonic() - runs

    node.lab.mark()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = list(pool.map(one, range(AT_ONCE)))
    time.sleep(2)  # packets are told of singly, or as a number a look later
    dropped = [r for r in node.lab.records(kind="packet") if r["reason"] in ("mac", "source")]
    remove_all(node, [box for box, _, _ in made])
    assert {status for _, status, _ in made} == {200}, made
    assert max(took for _, _, took in made) < REACHED_S, made
    assert not dropped, dropped[:5]
