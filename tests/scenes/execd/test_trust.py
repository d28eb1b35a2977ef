# SPDX-License-Identifier: Apache-2.0
"""The gateway's CA in containers: real clients, in roots that imitate distributions

Each client is also asked without our variables (env -i): then only the system's own
stores can have convinced it. And each is asked before, when it has to refuse.
"""
import base64
import http.server
import re
import shutil
import ssl
import subprocess
import threading

import pytest

from box import free_port, wait_for
from root import RootBox

CA = "/opt/opensandbox/mitmproxy-ca-cert.pem"
FLAG = {"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT": "true"}
BUNDLE = "/opt/opensandbox/merged-ca-certificates.pem"

# javac --release 8 -g:none of: public class Probe { public static void main(String[]
# words) throws Exception { new java.net.URL(words[0]).openStream().close(); } }
PROBE = base64.b64decode(
    "yv66vgAAADQAHQoAAgADBwAEDAAFAAYBABBqYXZhL2xhbmcvT2JqZWN0AQAGPGluaXQ+AQADKClWBwAIAQAMamF2"
    "YS9uZXQvVVJMCgAHAAoMAAUACwEAFShMamF2YS9sYW5nL1N0cmluZzspVgoABwANDAAOAA8BAApvcGVuU3RyZWFt"
    "AQAXKClMamF2YS9pby9JbnB1dFN0cmVhbTsKABEAEgcAEwwAFAAGAQATamF2YS9pby9JbnB1dFN0cmVhbQEABWNs"
    "b3NlBwAWAQAFUHJvYmUBAARDb2RlAQAEbWFpbgEAFihbTGphdmEvbGFuZy9TdHJpbmc7KVYBAApFeGNlcHRpb25z"
    "BwAcAQATamF2YS9sYW5nL0V4Y2VwdGlvbgAhABUAAgAAAAAAAgABAAUABgABABcAAAARAAEAAQAAAAUqtwABsQAA"
    "AAAACQAYABkAAgAXAAAAHQAEAAEAAAARuwAHWSoDMrcACbYADLYAELEAAAAAABoAAAAEAAEAGwAA")

CLIENTS = {
    "curl": "curl -sSf -o /dev/null {url}",
    "wget": "wget -nv -O /dev/null {url}",
    "git": "git ls-remote {url}repo.git",
    "openssl": "openssl s_client -connect {host} -servername localhost -verify_return_error "
               "-brief </dev/null",
    "python": "/usr/bin/python3 -c 'import urllib.request as u; u.urlopen(\"{url}\")'",
    "requests": "/usr/bin/python3 -c 'import requests; requests.get(\"{url}\")'",
    "node": "node -e 'require(\"https\").get(\"{url}\", r => process.exit(0))"
            ".on(\"error\", e => {{ console.log(e); process.exit(1) }})'",
    "java": "/usr/lib/jvm/java-17-openjdk-*/bin/java -cp /opt/probe Probe {url}",
}
# What reads the system's stores without any variable.
SYSTEM = ("curl", "wget", "git", "openssl", "python", "java")


class Origin(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b""
        if self.path.startswith("/repo.git/info/refs"):
            body = b"95d09f2b10159347eece71399a7e2e907ea3df4f\trefs/heads/main\n"
        elif self.path.startswith("/repo.git/HEAD"):
            body = b"ref: refs/heads/main\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def openssl(*words, cwd):
    subprocess.run(["openssl", *words], cwd=cwd, check=True, capture_output=True)


def make_ca(folder, name, subject):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30", "-utf8",
            "-subj", subject, cwd=folder)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{name}-leaf.key", "-out", f"{name}-leaf.csr", "-subj", "/CN=localhost",
            cwd=folder)
    (folder / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", f"{name}-leaf.csr", "-CA", f"{name}.pem", "-CAkey",
            f"{name}.key", "-CAcreateserial", "-days", "20", "-extfile", "san",
            "-out", f"{name}-leaf.pem", cwd=folder)
    return (folder / f"{name}.pem").read_bytes()


class Lab:
    """Two CAs of one subject, and an origin below each."""

    def __init__(self, folder):
        self.folder = folder
        self.first = make_ca(folder, "first", "/O=  Sally   Port Übung/CN=gateway CA")
        self.second = make_ca(folder, "second", "/O=  Sally   Port Übung/CN=gateway CA")
        self.ports = {n: self.serve(n) for n in ("first", "second")}

    def serve(self, name):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
        server.handle_error = lambda *_: None  # who does not believe, leaves
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}-leaf.pem", self.folder / f"{name}-leaf.key")
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1]

    def client(self, name, ca="first"):
        host = f"localhost:{self.ports[ca]}"
        return CLIENTS[name].format(host=host, url=f"https://{host}/")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    for program in ("curl", "wget", "git", "openssl", "node", "java", "keytool"):
        assert shutil.which(program), f"{program} is not installed (deploy/packages test)"
    return Lab(tmp_path_factory.mktemp("lab"))


def asked(box, lab, names, clean=False, ca="first"):
    """The clients that do not believe in the origin."""
    refused = {}
    for name in names:
        status, text = box.run(lab.client(name, ca), clean)
        if status:
            refused[name] = text
    return refused


# Roots. OpenSSL's own folder is turned to where the distribution's OpenSSL looks.
DEBIAN = "rm -f $M/usr/lib/ssl/cert.pem"
ALPINE = """
rm -f $M/usr/sbin/update-ca-certificates $M/usr/lib/ssl/cert.pem
rm -rf $M/usr/local/share/ca-certificates
mkdir $M/usr/local/share/ca-certificates
find $M/etc/ssl/certs -type l -delete
ln -s certs/ca-certificates.crt $M/etc/ssl/cert.pem
ln -s /etc/ssl/cert.pem $M/usr/lib/ssl/cert.pem
rm -rf $M/etc/ssl/certs/java $M/usr/lib/jvm/temurin*
"""
FEDORA = """
mkdir -p $M/etc/pki/ca-trust/extracted/pem $M/etc/pki/ca-trust/source/anchors
mkdir -p $M/etc/pki/tls/certs $M/etc/pki/ca-trust/extracted/java $M/etc/pki/java
P=/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
cp $M/etc/ssl/certs/ca-certificates.crt $M$P
cp -L $M/etc/ssl/certs/java/cacerts $M/etc/pki/ca-trust/extracted/java/cacerts
chmod 0444 $M$P $M/etc/pki/ca-trust/extracted/java/cacerts
ln -s $P $M/etc/pki/tls/certs/ca-bundle.crt
ln -s $P $M/etc/pki/tls/cert.pem
ln -s /etc/pki/ca-trust/extracted/java/cacerts $M/etc/pki/java/cacerts
rm -rf $M/etc/ssl $M/usr/local/share/ca-certificates $M/usr/sbin/update-ca-certificates
mkdir $M/etc/ssl
ln -s /etc/pki/tls/certs $M/etc/ssl/certs
rm -f $M/usr/lib/ssl/cert.pem
ln -s /etc/pki/tls/cert.pem $M/usr/lib/ssl/cert.pem
for s in $M/usr/lib/jvm/*/lib/security/cacerts; do
    ln -sf /etc/pki/java/cacerts $s
done
"""
NO_ROOTS = """
rm -rf $M/etc/ssl $M/etc/pki $M/usr/local/share/ca-certificates $M/usr/lib/ssl/cert.pem
rm -f $M/usr/sbin/update-ca-certificates
rm -rf $M/usr/lib/jvm $M/usr/lib/python3*/*/certifi/cacert.pem
rm -rf $M/usr/lib/python3*/*/pip/_vendor/certifi/cacert.pem
rm -rf $M/usr/local/lib/python3*
"""
# Built for Debian's path of the bundle, whatever the root imitates.
BUILT_IN = ("curl", "wget", "git")


@pytest.fixture
def start(lab, tmp_path):
    started = []

    def begin(*words, script=DEBIAN, ca=lab.first, env=FLAG, **more):
        files = {CA: ca, "/opt/probe/Probe.class": PROBE, **more.pop("files", {})}
        files = {path: data for path, data in files.items() if data is not None}
        box = RootBox(*(words or ("--init", "--", "sleep", "600")), tmp=tmp_path,
                      script=script, files=files, env=env, **more)
        started.append(box)
        return box
    yield begin
    for box in started:
        box.__exit__()


def test_without_the_flag_nobody_believes(start, lab):
    box = start(env={})
    assert sorted(asked(box, lab, CLIENTS)) == sorted(CLIENTS)
    assert box.run(f"ls {BUNDLE}")[0]


@pytest.mark.parametrize("name", ["debian", "alpine", "fedora"])
def test_everybody_believes(name, start, lab):
    box = start(script={"debian": DEBIAN, "alpine": ALPINE, "fedora": FEDORA}[name])
    names = [n for n in CLIENTS if n != "java" or name != "alpine"]
    if name == "fedora":
        names.remove("wget")
    assert not asked(box, lab, names)
    without = [n for n in SYSTEM if n in names]
    if name == "fedora":
        without = [n for n in without if n not in BUILT_IN]
    assert not asked(box, lab, without, clean=True)
    # the system's roots are there as before
    status, text = box.run(f"grep -c BEGIN {BUNDLE}")
    assert status == 0 and int(text) > 100
    # of the other CA of the same name nobody has heard
    assert asked(box, lab, ["curl", "python"], ca="second")


def test_the_programs_environment_has_it_too(start, lab, tmp_path):
    program = lab.client("curl") + " && " + lab.client("node") + " && echo both"
    box = start("--init", "--", "sh", "-c", program, ready=False)
    assert box.process.wait(30) == 0
    assert "both" in box.text()


def sums(box):
    text = box.run("find /etc/ssl /opt/opensandbox /usr/local/share/ca-certificates "
                   "-newer /opt/probe/Probe.class -type f -exec md5sum {} + | sort")[1]
    links = box.run("ls -l /etc/ssl/certs | grep opensandbox | sed 's/.*[0-9] //'")[1]
    return text, links


AGAIN = "chroot /proc/1/root /opt/opensandbox/execd --init --listen 127.0.0.1:{port} -- true"


def test_again_changes_nothing_and_another_ca_takes_its_place(start, lab):
    box = start()
    first = sums(box)
    assert "mitmproxy-ca.crt" in first[0] and "cacerts" in first[0]
    again = "env -u SSL_CERT_FILE -u NODE_EXTRA_CA_CERTS " + \
        AGAIN.format(port=free_port())
    status, text = box.run(again)
    assert status == 0, text
    assert sums(box) == first
    box.run(f"cat > {CA} <<'END'\n{lab.second.decode()}END\n")
    status, text = box.run(again)
    assert status == 0, text
    names = [n for n in CLIENTS if n != "node"]
    assert not asked(box, lab, names, ca="second")
    assert not asked(box, lab, SYSTEM, clean=True, ca="second")
    assert sorted(asked(box, lab, SYSTEM, clean=True)) == sorted(SYSTEM)
    assert box.run("grep -c 'opensandbox-mitmproxy-ca: begin' "
                   "/etc/ssl/certs/ca-certificates.crt")[1] == "1"


def test_the_distributions_tool_keeps_it(start, lab):
    """update-ca-certificates writes all anew: ours is among what it gathers."""
    box = start()
    status, text = box.run("/usr/sbin/update-ca-certificates --fresh")
    assert status == 0, text
    assert not asked(box, lab, ["curl", "wget", "openssl", "python"], clean=True)


def test_what_the_image_trusts_besides_stays(start, lab):
    """Its own variables named the second CA; they name both afterwards."""
    extra = {"SSL_CERT_FILE": "/etc/own.pem", "NODE_EXTRA_CA_CERTS": "/etc/own.pem"}
    box = start(env={**FLAG, **extra}, files={"/etc/own.pem": lab.second})
    for ca in ("first", "second"):
        assert not asked(box, lab, ["curl", "python", "requests", "node"], ca=ca)


def test_a_read_only_root(start, lab):
    box = start(script=DEBIAN + "\nmount -o remount,ro,bind $M")
    assert list(asked(box, lab, CLIENTS)) == ["wget"]  # which reads no variable
    status, text = box.run("echo $SSL_CERT_FILE; echo $JAVA_TOOL_OPTIONS")
    assert text.startswith("/run/opensandbox/merged-ca-certificates.pem")
    assert "-Djavax.net.ssl.trustStore=/run/opensandbox/cacerts.jks" in text
    assert "Read-only file system" in box.text()


def test_a_user_who_is_not_root(start, lab):
    box = start(user="1000:1000", env={**FLAG, "HOME": "/nonexistent"})
    assert list(asked(box, lab, CLIENTS)) == ["wget"]
    assert box.run("echo $SSL_CERT_FILE")[1] in (
        "/dev/shm/opensandbox-1000/merged-ca-certificates.pem",
        "/tmp/opensandbox-1000/merged-ca-certificates.pem")
    assert "Permission denied" in box.text()


def test_an_image_without_roots(start, lab):
    box = start(script=NO_ROOTS)
    assert not asked(box, lab, ["curl", "python", "requests", "node", "git", "openssl"])
    assert box.run(f"grep -c BEGIN {BUNDLE}")[1] == "1"
    assert "no root certificates" in box.text()


def test_a_volume_is_left_alone(start, lab):
    """A folder of another file system is somebody else's."""
    script = DEBIAN + """
cp -a $M/etc/ssl/certs $M/tmp/certs
mount --bind $M/tmp/certs $M/etc/ssl/certs
"""
    box = start(script=script)
    assert box.run("grep -c opensandbox /etc/ssl/certs/ca-certificates.crt")[1] == "0"
    assert "does not have the CA" in box.text()
    assert not asked(box, lab, ["curl", "python", "node", "java"])


def pkcs12(folder, locked):
    """A store as run times bring it since version 18, or an encrypted one."""
    words = ["keytool", "-importcert", "-noprompt", "-alias", "own", "-file", "second.pem",
             "-keystore", "store.p12", "-storetype", "PKCS12", "-storepass", "changeit"]
    if not locked:
        words += ["-J-Dkeystore.pkcs12.macAlgorithm=NONE",
                  "-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE"]
    (folder / "store.p12").unlink(missing_ok=True)
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return (folder / "store.p12").read_bytes()


def test_java_stores_of_the_newer_kind(start, lab):
    box = start(files={"/etc/ssl/certs/java/cacerts": pkcs12(lab.folder, locked=False)})
    for ca in ("first", "second"):
        assert not asked(box, lab, ["java"], clean=True, ca=ca)
    status, text = box.run("keytool -list -keystore /etc/ssl/certs/java/cacerts "
                           "-storepass changeit")
    assert status == 0 and "opensandbox-mitmproxy" in text and "2 entries" in text


def test_java_stores_that_are_encrypted(start, lab):
    store = pkcs12(lab.folder, locked=True)
    box = start(files={"/etc/ssl/certs/java/cacerts": store})
    assert not asked(box, lab, ["java"])
    assert asked(box, lab, ["java"], clean=True)
    assert "encrypted" in box.text()


def test_the_browsers_database(start, lab):
    box = start(env={**FLAG, "HOME": "/root"}, script=DEBIAN + "\nrm -rf $M/root/.pki")
    # certutil adds the certificate and then what it is trusted for: two steps
    wait_for(lambda: re.search(r"opensandbox-mitmproxy\s+C,,",
                               box.run("certutil -L -d sql:/root/.pki/nssdb")[1]), 10)


def test_a_ca_that_comes_later_is_waited_for(start, lab):
    box = start("--init", "--", "sh", "-c", "echo started with $SSL_CERT_FILE; sleep 600",
                files={CA: None})
    assert "started" not in box.text()
    assert box.run("echo answers")[1] == "answers"
    box.run(f"cat > {CA}.new <<'END'\n{lab.first.decode()}END\nmv {CA}.new {CA}")
    wait_for(lambda: "started with " + BUNDLE in box.text(), 10)
    assert not asked(box, lab, ["curl"])


@pytest.mark.parametrize("ca,sentence", [
    (b"hello\n", "holds no certificate"),
    (b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "is not one"),
    (b"-----BEGIN PRIVATE KEY-----\nMC4CAQ==\n-----END PRIVATE KEY-----\n",
     "holds no certificate"),
])
def test_a_ca_that_is_none_stops_nothing(ca, sentence, start):
    box = start("--init", "--", "echo", "it runs", ca=ca, ready=False)
    assert box.process.wait(20) == 0
    assert sentence in box.text() and "it runs" in box.text()


def test_the_pre_script_may_speak_through_the_gateway(start, lab):
    script = lab.client("curl") + "\nexport SAID=hello\n"
    box = start("--init", "--", "sh", "-c", "echo $SAID $SSL_CERT_FILE", ready=False,
                env={**FLAG, "EXECD_BOOTSTRAP_PRE_SCRIPT": "/opt/pre.sh"},
                files={"/opt/pre.sh": script.encode()})
    assert box.process.wait(20) == 0, box.text()
    assert f"hello {BUNDLE}" in box.text()


def test_it_costs_milliseconds(start, lab):
    """What the daemon itself measured, the best of some starts: where all has to be
    written, and where all is right already."""
    box = start()
    times = [int(n) for n in re.findall(r"(\d+) us\)", box.text())]
    assert len(times) == 1 and times[0] < 500_000
    again = AGAIN.format(port=free_port())
    runs = [int(re.search(r"(\d+) us\)", box.run(again)[1])[1]) for _ in range(5)]
    print("written", times, "right already", runs)
    assert min(runs) < 50_000
