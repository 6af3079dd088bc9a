#!/usr/bin/env python3
"""What stands below a prefix of a bucket, brought into a directory by a client of its own: mirror.py BUCKET PREFIX DIR

A file that is there with the size and time of its object is not brought again, and one without an object goes. The
server and the keys are those of the AWS_* variables.
"""
import os
import sys
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote

from ask import ask, connect


def listed(bucket, prefix, server):
    """Key, size and time of each object; the last as the server writes it."""
    token = ""
    while True:
        more = f"continuation-token={quote(token, safe='')}&" if token else ""
        status, body = ask("GET", f"/{bucket}", f"{more}list-type=2&prefix={quote(prefix, safe='')}", server=server)
        if status != 200:
            sys.exit(f"list {bucket}/{prefix}: {status} {body[:300]}")
        root = ElementTree.fromstring(body)
        space = root.tag.partition("}")[0] + "}" if "}" in root.tag else ""
        for row in root.iter(space + "Contents"):
            yield tuple(row.findtext(space + name) for name in ("Key", "Size", "LastModified"))
        token = root.findtext(space + "NextContinuationToken")
        if not token:
            return


def bring(bucket, key, path, server):
    status, body = ask("GET", "/" + quote(f"{bucket}/{key}", safe="/-_.~"), server=server)
    if status == 404:  # removed since the listing
        return
    if status != 200:
        sys.exit(f"get {bucket}/{key}: {status} {body[:300]}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(body)


def main(bucket, prefix, to):
    server, there = connect(), set()
    os.makedirs(to, exist_ok=True)
    note = to.rstrip("/") + ".known"
    known = set(open(note).read().splitlines()) if os.path.exists(note) else set()
    now = []
    for key, size, time in listed(bucket, prefix + "/", server):
        path = os.path.join(to, key[len(prefix) + 1:])
        line = f"{key!r} {size} {time}"
        there.add(path)
        now.append(line)
        if line not in known or not os.path.exists(path) or "/.ckpt/" in key:
            bring(bucket, key, path, server)
    for at, _, files in os.walk(to):
        for name in files:
            if os.path.join(at, name) not in there:
                os.remove(os.path.join(at, name))
    with open(note, "w") as out:
        out.write("".join(line + "\n" for line in now))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
