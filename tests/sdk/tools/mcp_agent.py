# SPDX-License-Identifier: Apache-2.0
"""mcp_agent.py - an agent's side of the official MCP server, over stdio

    async with agent() as a:
        made = await a.call("sandbox_create", image="tests:local")   what it returned
        await a.refused("sandbox_get_info", sandbox_id="none")         an error, in time
"""
import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = str(Path(sys.executable).parent / "opensandbox-mcp")
PLAIN_LOGS = str(Path(__file__).parent / "plain_logs")
ANSWER_S = 60  # a pull of an image may be in it


class Agent:
    def __init__(self, session):
        self.session = session

    async def ask(self, name, args):
        got = await asyncio.wait_for(self.session.call_tool(name, args), ANSWER_S)
        text = got.content[0].text if got.content else "null"
        return getattr(got, "isError", getattr(got, "is_error", False)), text

    async def call(self, name, **args):
        failed, text = await self.ask(name, args)
        assert not failed, (name, text)
        try:
            return json.loads(text)
        except ValueError:
            return text

    async def refused(self, name, **args):
        """The server keeps to itself what the API said."""
        failed, text = await self.ask(name, args)
        assert failed and name in text, (name, text)


@asynccontextmanager
async def agent():
    command = StdioServerParameters(
        command=SERVER, args=["--domain", os.environ["OPEN_SANDBOX_DOMAIN"], "--protocol", "http"],
        env={**os.environ, "PYTHONPATH": PLAIN_LOGS})  # the key is among them
    async with stdio_client(command) as (r, w), ClientSession(r, w) as session:
        await session.initialize()
        yield Agent(session)


async def gone(a, box):
    """What an agent hears of a sandbox that it has killed: an answer to each
    question, at once."""
    begun = asyncio.get_running_loop().time()
    for name in ("sandbox_get_info", "sandbox_kill", "sandbox_renew", "sandbox_get_endpoint",
                 "sandbox_connect"):
        more = {"sandbox_renew": {"timeout_seconds": 60},
                "sandbox_get_endpoint": {"port": 44772}}.get(name, {})
        await a.refused(name, sandbox_id=box, **more)
    # and the server is there for others
    assert box not in json.dumps(await a.call("sandbox_list"))
    assert asyncio.get_running_loop().time() - begun < 20
