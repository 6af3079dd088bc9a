"""arrow.py KIND VERB [PREFIX DIR]: one transfer by pyarrow, or by Ray's Checkpoint, which is pyarrow inside, in a
process of its own, for spec/servers/interop.py. KIND: pyarrow, ray. VERB: version; fetch, from the bucket into DIR (and
Ray's as_directory into DIR.as); send, the other way; note, Ray's metadata of a checkpoint. Nothing of ours is in this process: what ends it by a signal is theirs.
"""
import os
import shutil
import sys

import pyarrow
import pyarrow.fs as fs

BUCKET = "ckpt-test"


def bucket():
    # Small files in one request: else it sends each in one part, and ends some of these twice at once, of
    # which this server may keep neither.
    return fs.S3FileSystem(access_key=os.environ["AWS_ACCESS_KEY_ID"], secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
                           endpoint_override=os.environ["AWS_ENDPOINT_URL"].split("//")[1], scheme="http",
                           region="us-east-1", allow_delayed_open=True)


def pyarrow_version():
    print(pyarrow.__version__)


def pyarrow_fetch(prefix, to):
    os.makedirs(to, exist_ok=True)
    fs.copy_files(f"{BUCKET}/{prefix}", to, source_filesystem=bucket(), destination_filesystem=fs.LocalFileSystem())


def pyarrow_send(prefix, top):
    fs.copy_files(top, f"{BUCKET}/{prefix}", source_filesystem=fs.LocalFileSystem(), destination_filesystem=bucket())


def ray_version():
    import ray
    print(ray.__version__)


def ray_at(prefix):
    from ray.train import Checkpoint
    return Checkpoint(f"{BUCKET}/{prefix}", bucket())


def ray_fetch(prefix, to):
    ray_at(prefix).to_directory(to)
    with ray_at(prefix).as_directory() as here:
        shutil.copytree(here, to + ".as", dirs_exist_ok=True)


def ray_note(prefix, _):
    ray_at(prefix).update_metadata({"epoch": 3})


globals()[f"{sys.argv[1]}_{sys.argv[2]}"](*sys.argv[3:])
