"""Asks spec/servers/tokens.py as Google's own library does: ask_tokens.py GATE DIR. Ends with 0 if each
source of tokens opens the gate to the bucket."""
import os
import sys

# The library reads these when it is loaded.
os.environ["GCE_METADATA_HOST"] = os.environ["GCE_METADATA_IP"] = sys.argv[1].partition("://")[2]
os.environ["CLOUDSDK_CONFIG"] = "/nowhere"

import google.auth
from google.auth.transport.requests import AuthorizedSession
from google.oauth2 import credentials, service_account

gate, folder = sys.argv[1], sys.argv[2]
SCOPES = ["https://www.googleapis.com/auth/devstorage.read_write"]


def passes(name, found):
    answer = AuthorizedSession(found).get(gate + "/storage/v1/b/ckpt-test/o")
    assert answer.status_code == 200, (name, answer.status_code)
    print("#", name, "opens the gate for google-auth", google.auth.__version__)


service = os.path.join(folder, "service.json")
passes("a service account's file", service_account.Credentials.from_service_account_file(service, scopes=SCOPES))
os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = service
passes("the default, such a file", google.auth.default(scopes=SCOPES)[0])
del os.environ["GOOGLE_APPLICATION_CREDENTIALS"]
# The library takes no other token_uri from a user's file than Google's own.
user = credentials.Credentials.from_authorized_user_file(os.path.join(folder, "user.json"))
passes("a user's refresh token", credentials.Credentials(
    None, refresh_token=user.refresh_token, token_uri=gate + "/token", client_id=user.client_id,
    client_secret=user.client_secret))
passes("the default, the metadata server", google.auth.default(scopes=SCOPES)[0])
