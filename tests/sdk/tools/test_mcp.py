# SPDX-License-Identifier: Apache-2.0
"""The official MCP server: an agent's tool calls, over stdio"""
import asyncio
import json

from mcp_agent import agent, gone


async def work():
    async with agent() as a:
        made = await a.call("sandbox_create", image="tests:local", timeout_seconds=600)
        box = made.get("sandbox_id") or made["id"]
        at = f"/tmp/mcp-{box}"
        done = await a.call("command_run", sandbox_id=box, command="echo to the agent; exit 2")
        assert "to the agent" in json.dumps(done) and "CommandExecError" in json.dumps(done)
        await a.call("file_create_directories", sandbox_id=box, entries=[{"path": at, "mode": 755}])
        await a.call("file_write", sandbox_id=box, path=at + "/f", content="old\n")
        await a.call("file_replace_contents", sandbox_id=box, entries=[
            {"path": at + "/f", "old_content": "old", "new_content": "new"}])
        assert "new" in str(await a.call("file_read", sandbox_id=box, path=at + "/f"))
        await a.refused("file_read", sandbox_id=box, path=at + "/none")
        await a.call("file_move", sandbox_id=box, entries=[{"src": at + "/f", "dest": at + "/g"}])
        assert at + "/g" in json.dumps(await a.call("file_search", sandbox_id=box, path=at,
                                                    pattern="g"))
        await a.call("file_delete", sandbox_id=box, paths=[at + "/g"])
        await a.call("file_delete_directories", sandbox_id=box, paths=[at])
        metrics = await a.call("sandbox_get_metrics", sandbox_id=box)
        assert "cpu" in json.dumps(metrics)
        assert "true" in json.dumps(await a.call("sandbox_healthcheck", sandbox_id=box))
        await a.call("sandbox_kill", sandbox_id=box)
        await gone(a, box)


def test_every_tool_an_agent_has():
    asyncio.run(asyncio.wait_for(work(), 60))
