"""`rackmath mcp` against the published client library of the protocol: start, list, call, error, cancel."""

import sys

import anyio
from mcp import Client, StdioServerParameters


async def exchange(command: str, mode: str) -> str:
    async with Client(StdioServerParameters(command=command, args=["mcp"]), mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert any(tool.name == "estimate" for tool in tools), tools
        arguments = {"model": "llama-3.1-8b", "on": "1xh200", "concurrency": 8, "detail": "full"}
        answer = await client.call_tool("estimate", arguments)
        assert not answer.is_error and answer.structured_content["served"]["tpot_ms"]["value"] > 0, answer
        wrong = await client.call_tool("estimate", {"model": "llama-3.1-7b"})
        assert wrong.is_error and "the nearest is" in wrong.content[0].text, wrong
        resources = (await client.list_resources()).resources
        read = await client.read_resource(str(resources[0].uri))
        assert len(read.contents[0].text) > 50, read
        prompt = await client.get_prompt("compare-clouds", {"model": "qwen3-32b", "workload": "1M a day"})
        assert "qwen3-32b" in prompt.messages[0].content.text, prompt
        # Given up by the caller: the library tells the server, which goes on with others.
        with anyio.move_on_after(0.1) as scope:
            await client.call_tool("simulate", {"model": "llama-3.1-8b", "on": "1xh200", "rate": 9, "requests": 390000})
        assert scope.cancelled_caught
        chips = await client.call_tool("chips", {"names": ["h100"]})
        assert not chips.is_error, chips
        return str(client.protocol_version)


async def main() -> None:
    versions = [await exchange(sys.argv[1], mode) for mode in ("auto", "legacy")]
    assert versions[0] == "2026-07-28" and versions[1] < versions[0], versions
    print("both manners:", *versions)


anyio.run(main)
