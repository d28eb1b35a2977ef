# SPDX-License-Identifier: Apache-2.0
"""The official MCP server with a whole node: the tools for a sandbox's life"""
import asyncio
import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = str(Path(sys.executable).parent / "opensandbox-mcp")


async def agent():
    async def call(name, **args):
        got = await session.call_tool(name, args)
        text = got.content[0].text if got.content else "null"
        failed = getattr(got, "isError", getattr(got, "is_error", False))
        assert not failed, (name, text)
        try:
            return json.loads(text)
        except ValueError:
            return text

    command = StdioServerParameters(
        command=SERVER, args=["--domain", os.environ["OPEN_SANDBOX_DOMAIN"], "--protocol", "http"],
        env={**os.environ})
    async with stdio_client(command) as (r, w), ClientSession(r, w) as session:
        await session.initialize()
        made = await call("sandbox_create", image="tests:local", timeout_seconds=600,
                          metadata={"case": "mcp"}, resource={"memory": "256Mi"})
        box = made.get("sandbox_id") or made["id"]
        try:
            listed = await call("sandbox_list", filter={"metadata": {"case": "mcp"}})
            assert box in json.dumps(listed)
            none = await call("sandbox_list", filter={"metadata": {"case": "none"}})
            assert box not in json.dumps(none)
            before = await call("sandbox_get_info", sandbox_id=box)
            assert "Running" in json.dumps(before)
            await call("sandbox_renew", sandbox_id=box, timeout_seconds=7200)
            after = await call("sandbox_get_info", sandbox_id=box)
            assert after["expires_at"] > before["expires_at"]
            await call("sandbox_connect", sandbox_id=box)

            begun = time.monotonic()
            done = await call("command_run", sandbox_id=box, command="echo again")
            assert "again" in json.dumps(done) and time.monotonic() - begun < 5
            endpoint = await call("sandbox_get_endpoint", sandbox_id=box, port=44772)
            with urllib.request.urlopen(urllib.request.Request(
                    f"http://{endpoint['endpoint']}/ping", headers=endpoint["headers"]),
                    timeout=20) as reply:
                assert reply.status == 200
        finally:
            await call("sandbox_kill", sandbox_id=box)
    with pytest.raises(urllib.error.HTTPError) as gone:
        urllib.request.urlopen(urllib.request.Request(
            f"http://{os.environ['OPEN_SANDBOX_DOMAIN']}/v1/sandboxes/{box}",
            headers={"OPEN-SANDBOX-API-KEY": os.environ["OPEN_SANDBOX_API_KEY"]}), timeout=20)
    assert gone.value.code == 404


def test_the_life_of_an_agents_sandbox():
    asyncio.run(asyncio.wait_for(agent(), 300))
