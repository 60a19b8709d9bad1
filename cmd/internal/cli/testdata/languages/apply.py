"""Server-side apply, a conflict, a forced apply and a watch, with the Python client of Kubernetes."""

import base64
import json
import os
import subprocess
import tempfile

from kubernetes import client, watch

# The server ends when its stdin ends: when this process ends, however it does.
server = subprocess.Popen(
    [os.environ.get("TENURE", "tenure"), "serve", "--memory", "-o", "json", "--until-eof"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
served = json.loads(server.stdout.readline())
authority = tempfile.NamedTemporaryFile()  # the client takes a file
authority.write(base64.b64decode(served["certificateAuthorityData"]))
authority.flush()
config = client.Configuration()
config.host, config.ssl_ca_cert = served["url"], authority.name
config.api_key = {"authorization": "Bearer " + served["token"]}
api = client.ApiClient(config)
core = client.CoreV1Api(api)


def apply(manager, color, force=False):
    """Applies a text, which is JSON and so YAML: version 22 encodes no other body of this content type."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": color}}
    return api.call_api(
        "/api/v1/namespaces/default/configmaps/settings", "PATCH", body=json.dumps(body),
        query_params=[("fieldManager", manager), ("force", force)],
        header_params={"Content-Type": "application/apply-patch+yaml", "Accept": "application/json"},
        response_type="V1ConfigMap", auth_settings=["BearerToken"], _return_http_data_only=True)


apply("alice", "red")
try:
    apply("bob", "blue")
    raise AssertionError("no conflict")
except client.exceptions.ApiException as refused:
    assert refused.status == 409, refused
    assert 'conflict with "alice": .data.color' in json.loads(refused.body)["message"], refused.body
applied = apply("bob", "blue", force=True)
assert [entry.manager for entry in applied.metadata.managed_fields] == ["bob"]
listed = core.list_namespaced_config_map("default")
first = [one.metadata.resource_version for one in listed.items if one.metadata.name == "settings"]
assert first == [applied.metadata.resource_version]
core.delete_namespaced_config_map("settings", "default")
events = watch.Watch()
for event in events.stream(core.list_namespaced_config_map, "default", resource_version=first[0], timeout_seconds=60):
    if event["object"].metadata.name == "settings":
        assert event["type"] == "DELETED", event
        events.stop()
print("applied, in conflict, forced, watched")
server.stdin.close()
assert server.wait(timeout=60) == 0
