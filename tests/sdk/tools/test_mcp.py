# SPDX-License-Identifier: Apache-2.0
"""The official MCP server: an agent's tool calls, over stdio"""
import asyncio
import json
import os
import sys
from pathlib import Path

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
        env={**os.environ})  # the key is among them
    async with stdio_client(command) as (r, w), ClientSession(r, w) as session:
        await session.initialize()
        made = await call("sandbox_create", image="tests:local", timeout_seconds=600)
        box = made.get("sandbox_id") or made["id"]
        at = f"/tmp/mcp-{box}"
        done = await call("command_run", sandbox_id=box, command="echo to the agent; exit 2")
        assert "to the agent" in json.dumps(done) and "CommandExecError" in json.dumps(done)
        await call("file_create_directories", sandbox_id=box, entries=[{"path": at, "mode": 755}])
        await call("file_write", sandbox_id=box, path=at + "/f", content="old\n")
        await call("file_replace_contents", sandbox_id=box, entries=[
            {"path": at + "/f", "old_content": "old", "new_content": "new"}])
        assert "new" in str(await call("file_read", sandbox_id=box, path=at + "/f"))
        await call("file_move", sandbox_id=box, entries=[{"src": at + "/f", "dest": at + "/g"}])
        assert at + "/g" in json.dumps(await call("file_search", sandbox_id=box, path=at,
                                                  pattern="g"))
        await call("file_delete", sandbox_id=box, paths=[at + "/g"])
        await call("file_delete_directories", sandbox_id=box, paths=[at])
        metrics = await call("sandbox_get_metrics", sandbox_id=box)
        assert "cpu" in json.dumps(metrics)
        assert "true" in json.dumps(await call("sandbox_healthcheck", sandbox_id=box))
        await call("sandbox_kill", sandbox_id=box)


def test_every_tool_an_agent_has():
    asyncio.run(asyncio.wait_for(agent(), 60))
