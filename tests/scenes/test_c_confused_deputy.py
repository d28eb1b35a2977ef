# SPDX-License-Identifier: Apache-2.0
"""Whose request is this? Every way that rivals were made to hand a secret to
the wrong host. case NN: the failure it was first reported as."""
import base64
import gzip
import hashlib
import json
import re
from urllib.parse import quote

import pytest
from conftest import SECRET
from lab import ORIGIN4, ORIGIN6, OTHER4

GET = "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: {c}\r\n\r\n"


def get(host, path, last=True):
    return GET.format(path=path, host=host, c="close" if last else "keep-alive")


def raw(sandbox, kind, address, port, sni, text):
    return sandbox.run("/usr/bin/python3", SCRIPT, kind, address, str(port), *([sni] if sni else []),
                       input=text)


from conftest import HERE  # noqa: E402
SCRIPT = HERE / "raw.py"


def statuses(r):
    return [int(s) for s in re.findall(r"^HTTP/1\.1 (\d+)", r.stdout, re.M)]


def leaked(origin_seen):
    """Requests that carried the secret to anything but api.lab.test over TLS."""
    return [r for r in origin_seen() if SECRET in str(r["headers"])
            and not (r["sni"] == "api.lab.test" and r["scheme"] == "https")]


def test_case_01_host_of_another_on_an_inspected_connection(sandbox, origin_seen):
    # TLS to an allowed, opened host; Host names the host with the secret
    r = raw(sandbox, "tls", ORIGIN4, 443, "limited.lab.test", get("api.lab.test", "/ok/1"))
    assert statuses(r) == [421], r.stdout + r.stderr
    assert not origin_seen(path="/ok/1") and not leaked(origin_seen)


def test_case_01_sni_of_the_secret_host_with_another_authority(sandbox, origin_seen):
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", get("evil.lab.test", "/a"))
    assert statuses(r) == [421]
    assert not origin_seen(path="/a")


def test_case_01_spliced_connection_never_carries_it(sandbox, origin_seen, lab):
    env = sandbox.env() | {"SSL_CERT_FILE": str(lab.origin_ca)}
    r = sandbox.run("/usr/bin/python3", SCRIPT, "tls", ORIGIN4, "443", "plain.lab.test",
                    input=get("api.lab.test", "/b"), env=env)
    assert statuses(r) == [200], r.stderr  # between the sandbox and plain.lab.test
    [request] = origin_seen(path="/b")
    assert SECRET not in str(request) and request["sni"] == "plain.lab.test"


def test_case_02_plain_http_never_carries_it(sandbox, origin_seen):
    r = raw(sandbox, "tcp", ORIGIN4, 80, None, get("api.lab.test", "/c"))
    assert statuses(r) == [200]  # allowed, and nothing is bound to http
    r = raw(sandbox, "tcp", OTHER4, 80, None, get("api.lab.test", "/d"))
    assert all(SECRET not in str(q) for q in origin_seen())


def test_case_03_allowed_name_at_a_foreign_address(sandbox, origin_seen):
    status, _, err = sandbox.curl("--resolve", f"api.lab.test:443:{OTHER4}",
                                  "https://api.lab.test/e")
    assert status == 200, err
    [request] = origin_seen(path="/e")
    assert request["local"] in (ORIGIN4, ORIGIN6)  # ours, not what was dialled


@pytest.mark.parametrize("host", [
    "api.lab.test\x00.evil.lab.test", "evil.lab.test\x00api.lab.test", "api.lab.test%00",
    "api.lab.test/", "user@api.lab.test", "api..lab.test", "api.lab.test:443:80", "api.lab.test:",
    "api.lab.test,evil.lab.test", "[api.lab.test]", "api.lab.test:8443",
    "xapi.lab.test", "api.lab.test.evil.lab.test"])
def test_case_04_names_that_two_parsers_read_differently(sandbox, origin_seen, host):
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", get(host, "/f"))
    assert all(s in (400, 421) for s in statuses(r)) or not r.stdout, r.stdout
    assert not leaked(origin_seen)
    assert not [q for q in origin_seen(path="/f") if dict(q["headers"])["Host"].strip() != "api.lab.test"]


@pytest.mark.parametrize("sni", ["API.lab.test", "api.lab.test."])
def test_case_04_the_same_name_spelt_otherwise_is_the_same_name(sandbox, origin_seen, sni):
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", get(sni, "/g"))
    assert statuses(r) == [200]
    [request] = origin_seen(path="/g")
    assert dict(request["headers"])["Authorization"] == f"Bearer {SECRET}"
    assert dict(request["headers"])["Host"] == sni  # case 32: left as it was


@pytest.mark.parametrize("name,allowed", [
    ("notsub.lab.test", False), ("sub.lab.test", False), ("deep.sub.lab.test", True),
    ("xsub.lab.test", False), ("sub.lab.test.evil.lab.test", False)])
def test_case_06_07_wildcards_end_at_label_boundaries(sandbox, lab, name, allowed):
    r = sandbox.run("curl", "-sS", "--max-time", "5", "--cacert", lab.origin_ca, "--resolve",
                    f"{name}:443:{ORIGIN4}", f"https://{name}/")
    assert (r.returncode == 0) == allowed, r.stderr


def test_case_09_rebinding_to_a_private_address(lab, sandbox, origin_seen):
    # no pin and no address rule: what DNS says about the name is not enough
    with lab.policy([{"action": "allow", "target": "rebind.lab.test"}]):
        status, body, _ = sandbox.curl("--resolve", f"rebind.lab.test:80:{ORIGIN4}",
                                       "http://rebind.lab.test/r")
    assert status == 403 and "no_allowed_address" in body, body
    assert not origin_seen(path="/r")


def test_case_12_address_instead_of_a_name(lab, sandbox, origin_seen):
    status, _, err = sandbox.curl(f"https://{ORIGIN4}/h")
    assert status == 0  # no rule names the address
    with lab.policy([{"action": "allow", "target": "10.212.0.0/16"}]):
        status, _, err = sandbox.curl("--cacert", lab.origin_ca, f"https://{ORIGIN4}/h")
        assert status == 200, err
        status, _, err = sandbox.curl("--cacert", lab.origin_ca, "--resolve",
                                      f"api.lab.test:443:{ORIGIN4}", "https://api.lab.test/i")
        assert status == 200, err  # allowed by address: nothing is bound to it
        assert all(SECRET not in str(q) for q in origin_seen())


def test_case_15_second_request_for_another_host(sandbox, origin_seen):
    text = get("api.lab.test", "/j", last=False) + get("evil.lab.test", "/k")
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", text)
    assert statuses(r) == [200, 421], r.stdout
    assert origin_seen(path="/j") and not origin_seen(path="/k")
    assert not leaked(origin_seen)


def test_case_15_pipelined_plain_http_for_another_host(sandbox, origin_seen):
    text = get("plain.lab.test", "/l", last=False) + get("api.lab.test", "/m")
    r = raw(sandbox, "tcp", ORIGIN4, 80, None, text)
    assert statuses(r) == [200, 421]
    assert origin_seen(path="/l") and not origin_seen(path="/m")


def test_case_15_the_leaf_names_exactly_the_sni(lab, sandbox):
    r = sandbox.run("openssl", "s_client", "-connect", f"{ORIGIN4}:443", "-servername",
                    "api.lab.test", "-CAfile", lab.run_dir / "ca.pem", "-verify_return_error",
                    input="")
    pem = re.search(r"-----BEGIN.*?END CERTIFICATE-----", r.stdout, re.S)
    assert pem, r.stdout + r.stderr
    text = sandbox.run("openssl", "x509", "-noout", "-ext", "subjectAltName", input=pem.group(0)).stdout
    assert re.findall(r"DNS:[^,\s]+|IP[^,]*", text) == ["DNS:api.lab.test"]


def test_case_34_connection_may_not_drop_the_credential(sandbox, origin_seen):
    text = ("GET /n HTTP/1.1\r\nHost: api.lab.test\r\nConnection: close, authorization\r\n"
            "Authorization: x\r\n\r\n")
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", text)
    assert statuses(r) == [400] and not origin_seen(path="/n")


@pytest.mark.parametrize("protocols", ["h2c", "TLS/1.2, HTTP/1.1", "foo, tls/1.0", "HTTP/2.0", " H2C "])
def test_no_upgrade_to_requests_that_nobody_decides(sandbox, origin_seen, protocols):
    ask = "GET /upgrade HTTP/1.1\r\nHost: api.lab.test\r\nConnection: Upgrade, close\r\nUpgrade: {}\r\n\r\n"
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", ask.format(protocols))
    assert statuses(r) == [200], r.stdout + r.stderr
    [seen] = origin_seen(path="/upgrade")
    assert "upgrade" not in {name.lower() for name, _ in seen["headers"]}
    # what is no HTTP is the origin's to accept
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", ask.format("tlsx, foo/1"))
    assert statuses(r) == [101], r.stdout + r.stderr


def test_absolute_form_names_the_destination(sandbox, origin_seen):
    text = ("GET http://evil.lab.test/o HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n")
    r = raw(sandbox, "tcp", ORIGIN4, 80, None, text)
    assert statuses(r) in ([400], [421], [200])
    assert all(dict(q["headers"])["Host"] == "evil.lab.test" and q["local"] == OTHER4
               for q in origin_seen(path="/o"))


def test_echo_of_the_secret_is_redacted_in_headers_and_trailers(lab, sandbox):
    status, body, _ = sandbox.curl("-i", "https://api.lab.test/reflect")
    assert status == 200 and SECRET not in body and "[REDACTED]" in body
    r = raw(sandbox, "tls", ORIGIN4, 443, "api.lab.test", get("api.lab.test", "/trailers"))
    assert SECRET not in r.stdout and "X-Sum: 5" in r.stdout and "[REDACTED]" in r.stdout


def test_case_36_redirect_is_the_clients_and_carries_nothing(sandbox, origin_seen):
    status, _, _ = sandbox.curl("https://api.lab.test/redirect")
    assert status == 302
    assert [q["path"] for q in origin_seen()] == ["/redirect"]


DANCE = """
import json, re, sys, urllib.error, urllib.request
service, said = 'https://plain.lab.test/registry/' + sys.argv[1], []
def ask(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as r:
            return r.status, r.read().decode(), None
    except urllib.error.HTTPError as e:
        return e.code, '', e.headers.get_all('WWW-Authenticate')
status, _, challenges = ask(service)
if status == 401:
    realm = re.match('Bearer realm="([^"]+)"', challenges[0])[1]
    token = json.loads(ask(realm)[1]).get('token', 'none')
    status, _, _ = ask(service, Authorization='Bearer ' + token)
print(json.dumps([challenges, status]))
"""
LOGIN = "lab:login-of-the-registry"
CHALLENGES = ['Bearer realm="https://deep.sub.lab.test/token",service="registry",scope="repository:a:pull"',
              "Basic realm=lab"]


@pytest.fixture
def registry(lab):
    """dance(hosts, name): a client that answers challenges by itself; the
    credential is bound to these hosts."""
    lab.credential("login", base64.b64encode(LOGIN.encode()).decode())

    def dance(hosts, name):
        lab.binding({"name": "registry", "match": {"hosts": hosts},
                     "auth": {"type": "basic", "credential": "login"}})
        return json.loads(lab.sandboxes[0].python(DANCE, name).stdout)
    yield dance
    lab.admin.call("DELETE", "/v1/bindings/registry", expect=204)
    lab.admin.call("DELETE", "/v1/credentials/login", expect=204)


def authorizations(origin_seen, path):
    return [dict(r["headers"]).get("Authorization") for r in origin_seen(path=path)]


def test_case_37_challenge_comes_back_and_the_answer_goes_on(registry, origin_seen, lab):
    """Bound to the realm's host: the client's own token is the service's business."""
    with lab.policy([{"action": "allow", "target": t, "methods": ["GET"], "paths": ["/*"]}
                     for t in ("plain.lab.test", "deep.sub.lab.test")]):
        assert registry(["deep.sub.lab.test"], "realm") == [CHALLENGES, 200]
    basic = "Basic " + base64.b64encode(LOGIN.encode()).decode()
    assert authorizations(origin_seen, "/token") == [basic]
    assert authorizations(origin_seen, "/registry/realm") == [None, "Bearer granted"]


def test_case_37_one_credential_for_the_service_and_its_realm(registry, origin_seen):
    """The challenge does not even come."""
    hosts = ["plain.lab.test", "deep.sub.lab.test"]
    assert registry(hosts, "both") == [None, 200]
    basic = "Basic " + base64.b64encode(LOGIN.encode()).decode()
    assert authorizations(origin_seen, "/registry/both") == [basic]


WORDS = ("api-token", "{{api-token}}", "${API_TOKEN}", "Bearer api-token", "[REDACTED]")


@pytest.mark.parametrize("form", ["json", "form", "multipart", "gzip", "base64"])
def test_case_39_nothing_in_a_body_is_swapped(lab, sandbox, origin_seen, form):
    """There are no placeholders: the credential goes where its binding says, once."""
    text = json.dumps({w: w for w in WORDS})
    body = {"json": text, "form": "a=" + "&a=".join(map(quote, WORDS)),
            "multipart": "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n" + text + "\r\n--x--\r\n",
            "gzip": gzip.compress(text.encode()), "base64": base64.b64encode(text.encode())}[form]
    body = body if isinstance(body, bytes) else body.encode()
    file = lab.tmp / f"body-{form}"
    file.write_bytes(body)
    more = ["-H", "Content-Encoding: gzip"] if form == "gzip" else []
    assert sandbox.curl(*more, "--data-binary", f"@{file}", "-H", "X-Mine: {{api-token}}",
                        f"https://api.lab.test/body-{form}?q=%7B%7Bapi-token%7D%7D")[0] == 200
    [seen] = [r for r in origin_seen() if r["path"].startswith(f"/body-{form}")]
    assert seen["sha256"] == hashlib.sha256(body).hexdigest()
    assert seen["path"].endswith("?q=%7B%7Bapi-token%7D%7D")
    headers = dict(seen["headers"])
    assert headers["X-Mine"] == "{{api-token}}" and headers["Authorization"] == f"Bearer {SECRET}"
    assert str(seen["headers"]).count(SECRET) == 1


@pytest.mark.parametrize("own", ["user:api-token", "{{user}}:{{api-token}}", "x-oauth-basic:"])
def test_case_39_login_of_the_client_s_own_is_replaced_as_a_whole(sandbox, origin_seen, own):
    """Whatever stands inside its base64."""
    assert sandbox.curl("-u", own, "https://api.lab.test/own-login")[0] == 200
    assert authorizations(origin_seen, "/own-login") == [f"Bearer {SECRET}"]


def test_unknown_source_is_refused(lab, neighbour, sandbox, origin_seen):
    # the neighbour's interface with this sandbox's address: not this sandbox
    neighbour.lab.admin.call("DELETE", f"/v1/sandboxes/{neighbour.id}", expect=204)
    try:
        r = raw(neighbour, "tcp", ORIGIN4, 80, None, get("plain.lab.test", "/p"))
        assert r.returncode == 4, r.stdout + r.stderr
        assert not origin_seen(path="/p")
        assert lab.record(reason="unknown_sandbox", kind="connect")
    finally:
        lab.register(neighbour, team="lab")


def test_denied_first_host_leaves_nothing_behind(lab, sandbox, origin_seen):
    # plain HTTP: the connection is for the first host that was allowed, and a
    # denied one before it must not lend its name to an address
    with lab.policy([{"action": "deny", "target": "free.lab.test"},
                     {"action": "allow", "target": "10.212.0.0/16"}]):
        text = get("free.lab.test", "/q", last=False) + get(ORIGIN4, "/r")
        r = raw(sandbox, "tcp", ORIGIN4, 80, None, text)
    assert statuses(r) == [403, 200], r.stdout
    assert [dict(q["headers"])["Host"] for q in origin_seen()] == [ORIGIN4]
