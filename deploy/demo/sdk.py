#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sdk.py - a sandbox of the official Python SDK that makes a request with a
credential it never holds

sdk.py API KEY_FILE IMAGE TOKEN_FILE DEMO DOCKER OUT

API is the lifecycle API's host:port, KEY_FILE holds its key, TOKEN_FILE the
credential, DEMO is the folder of the demonstration, DOCKER where the Docker
daemon is asked what it knows of the container. What is seen is written into
files of the folder OUT, for deploy/demo/docker.sh to look at.
"""
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.models.sandboxes import CredentialProxyConfig, NetworkPolicy, NetworkRule
from opensandbox.sync.sandbox import SandboxSync

API, OTHER, ADDRESS = "api.demo.test", "other.demo.test", "203.0.113.10"
# The value that is looked for, and a decoy that the search must find, so that it
# is known to look. The pattern matches neither itself nor this text.
DECOY = "demo-decoy-" + "ee"
PATTERN = "demo-(secret|decoy)-[0-9a-f][0-9a-f]"
SEARCHES = {
    "environment": f"(env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline) 2>/dev/null "
                   f"| grep -aEo '{PATTERN}'",
    "files": f"grep -raEoh -D skip --exclude-dir=proc --exclude-dir=sys '{PATTERN}' / "
             "2>/dev/null",
    "memory": f"python3 /tmp/memory.py '{PATTERN}'",
}


def inside(sandbox, command):
    """What a command printed, standard error behind it."""
    done = sandbox.commands.run(command)
    return "\n".join(m.text for m in (*done.logs.stdout, *done.logs.stderr)) + "\n"


def get(url, *options):
    return (f"curl -sS -m 20 {' '.join(options)} -o /tmp/body -w '%{{http_code}}\\n' {url} "
            "&& cat /tmp/body; rm -f /tmp/body")


def demonstrate(sandbox, token, demo, docker, out):
    def note(name, text):
        (out / name).write_text(text)

    for name in ("ask.py", "memory.py"):
        sandbox.files.write_file(f"/tmp/{name}", (demo / name).read_text())
    sandbox.files.write_file("/var/tmp/decoy", DECOY)
    note("before", inside(sandbox, get(f"https://{API}/v1/hello")))

    sandbox.patch_egress_rules([NetworkRule(action="allow", target=API)])
    sandbox.credential_vault.create(
        credentials=[{"name": "demo-token", "source": {"value": token}}],
        bindings=[{"name": "demo-api", "match": {"hosts": [API], "paths": ["/v1/*"]},
                   "auth": {"type": "bearer", "credential": "demo-token"}}])
    note("allowed", f"https://{API}/v1/hello " + inside(sandbox, get(f"https://{API}/v1/hello")))

    for kind, search in SEARCHES.items():
        note(f"found.{kind}", inside(sandbox, search + "; true"))
    known = subprocess.run(["docker", "-H", docker, "inspect", f"sandbox-{sandbox.id}"],
                           check=True, capture_output=True, text=True, timeout=30)
    note("inspect", known.stdout)

    note("denied.dns", inside(sandbox, f"python3 /tmp/ask.py {OTHER}").strip())
    note("denied.http", inside(sandbox, "curl -sS -m 20 -i --resolve "
                                        f"{OTHER}:80:{ADDRESS} http://{OTHER}/v1/hello"))
    note("address", inside(sandbox, get(f"https://{ADDRESS}/v1/hello", "-k")))


def main():
    api, key, image, token, demo, docker, out = sys.argv[1:]
    config = ConnectionConfigSync(domain=api, api_key=Path(key).read_text().strip(),
                                  protocol="http")
    sandbox = SandboxSync.create(
        image, connection_config=config, timeout=timedelta(minutes=10),
        resource={"cpu": "500m", "memory": "256Mi"}, env={"DEMO_DECOY": DECOY},
        network_policy=NetworkPolicy(default_action="deny", egress=[]),
        credential_proxy=CredentialProxyConfig(enabled=True))
    try:
        demonstrate(sandbox, Path(token).read_text().strip(), Path(demo), docker, Path(out))
    finally:
        sandbox.kill()
        sandbox.close()


main()
