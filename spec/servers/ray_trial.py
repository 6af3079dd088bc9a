"""ray_trial.py DIR PLACE: a Ray Tune trial that reports DIR as its checkpoint; Ray puts it into the bucket, below
a place beside PLACE, and it is moved there under the name PLACE with a copy on the server's side."""
import os
import sys
import tempfile

import pyarrow.fs as fs
import ray
from ray import tune

SOURCE, PLACE = os.path.abspath(sys.argv[1]), sys.argv[2]
# As in interop.py: small files in one request.
S3 = fs.S3FileSystem(access_key=os.environ["AWS_ACCESS_KEY_ID"], secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
                     endpoint_override=os.environ["AWS_ENDPOINT_URL"].split("//")[1], scheme="http",
                     region="us-east-1", allow_delayed_open=True)


def trial(config):
    tune.report({"loss": 1}, checkpoint=tune.Checkpoint.from_directory(SOURCE))


with tempfile.TemporaryDirectory(prefix="ckpt-ray.") as home:
    ray.init(num_cpus=1, include_dashboard=False, _temp_dir=home, object_store_memory=80 << 20,
             logging_level="ERROR", configure_logging=False)
    results = tune.Tuner(trial, run_config=tune.RunConfig(
        name="trials", storage_path=PLACE + ".ray", storage_filesystem=S3, verbose=0)).fit()
    path = results[0].checkpoint.path
    ray.shutdown()
fs.copy_files(path, PLACE, source_filesystem=S3, destination_filesystem=S3)
