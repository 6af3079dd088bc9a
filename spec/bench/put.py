"""Run by put.sh: sends a directory by another client, and prints the seconds of processor and wall time.

    put.py obstore|pyarrow DIR PREFIX
"""

import asyncio
import os
import sys
import time

client, top, prefix = sys.argv[1:]
files = [os.path.join(at, name) for at, _, names in os.walk(top) for name in names]
endpoint = os.environ["AWS_ENDPOINT_URL"]
key, secret, region = (os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"))


async def by_obstore(store):
    import obstore

    side_by_side = asyncio.Semaphore(16)

    async def put(path):
        async with side_by_side:
            name = f"{prefix}/{os.path.relpath(path, top)}"
            if os.path.getsize(path) > 8 << 20:
                await obstore.put_async(store, name, open(path, "rb"), chunk_size=8 << 20, max_concurrency=8)
            else:
                await obstore.put_async(store, name, open(path, "rb").read())

    await asyncio.gather(*(put(path) for path in files))


def by_pyarrow():
    from pyarrow import fs

    bucket = fs.S3FileSystem(
        access_key=key,
        secret_key=secret,
        region=region,
        endpoint_override=endpoint,
        force_virtual_addressing=False,
    )
    return lambda: fs.copy_files(
        top, f"ckpt-test/{prefix}", destination_filesystem=bucket, chunk_size=8 << 20, use_threads=True
    )


if client == "obstore":
    from obstore.store import S3Store

    made = S3Store(
        "ckpt-test",
        endpoint=endpoint,
        access_key_id=key,
        secret_access_key=secret,
        region=region,
        unsigned_payload=True,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    work = lambda: asyncio.run(by_obstore(made))  # noqa: E731
else:
    work = by_pyarrow()
cpu, wall = time.process_time(), time.monotonic()
work()
print(f"{time.process_time() - cpu:.3f}\t{time.monotonic() - wall:.3f}")
