# SPDX-License-Identifier: Apache-2.0
"""The official MCP server with a whole node: the tools for a sandbox's life"""
import asyncio
import json
import os
import time
import urllib.error
import urllib.request

import pytest
from mcp_agent import agent, gone


async def work():
    async with agent() as a:
        made = await a.call("sandbox_create", image="tests:local", timeout_seconds=600,
                            metadata={"case": "mcp"}, resource={"memory": "256Mi"})
        box = made.get("sandbox_id") or made["id"]
        try:
            listed = await a.call("sandbox_list", filter={"metadata": {"case": "mcp"}})
            assert box in json.dumps(listed)
            none = await a.call("sandbox_list", filter={"metadata": {"case": "none"}})
            assert box not in json.dumps(none)
            before = await a.call("sandbox_get_info", sandbox_id=box)
            assert "Running" in json.dumps(before)
            await a.call("sandbox_renew", sandbox_id=box, timeout_seconds=7200)
            after = await a.call("sandbox_get_info", sandbox_id=box)
            assert after["expires_at"] > before["expires_at"]
            await a.call("sandbox_connect", sandbox_id=box)

            begun = time.monotonic()
            done = await a.call("command_run", sandbox_id=box, command="echo again")
            assert "again" in json.dumps(done) and time.monotonic() - begun < 5
            endpoint = await a.call("sandbox_get_endpoint", sandbox_id=box, port=44772)
            with urllib.request.urlopen(urllib.request.Request(
                    f"http://{endpoint['endpoint']}/ping", headers=endpoint["headers"]),
                    timeout=20) as reply:
                assert reply.status == 200
        finally:
            await a.call("sandbox_kill", sandbox_id=box)
        await gone(a, box)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(urllib.request.Request(
            f"http://{os.environ['OPEN_SANDBOX_DOMAIN']}/v1/sandboxes/{box}",
            headers={"OPEN-SANDBOX-API-KEY": os.environ["OPEN_SANDBOX_API_KEY"]}), timeout=20)
    assert refusal.value.code == 404


def test_the_life_of_an_agents_sandbox():
    asyncio.run(asyncio.wait_for(work(), 300))
