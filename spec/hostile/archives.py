#!/usr/bin/env python3
"""Archives that a stranger made, each unpacked by `ckpt-lua unpack`. Prints TAP.

A bad one is refused with the exit code and the words that are expected, in bounded time and memory;
nothing is left of it, and nothing outside of its directory has changed. A good one is unpacked.
"""
import gzip
import io
import os
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

PROGRAM = os.environ.get("CKPT_LUA", "./ckpt-lua")
SANITIZED = bool(os.environ.get("SANITIZE"))
SECONDS = 60 if SANITIZED else 30
SPACE = resource.RLIM_INFINITY if SANITIZED else 256 << 20
MIB = 1 << 20

cases = []


def case(name, data, words=None, *options):
    """`words`: of the error; None: it is to be unpacked."""
    cases.append((name, data, words, options))


def member(name, kind=tarfile.REGTYPE, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mtime = kind, len(data), 1700000000
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def tar(*members, form=tarfile.PAX_FORMAT, **fields):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, **fields) as t:
        for info, data in members:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def header(name, size_field=b"0" * 11 + b"\0", kind=b"0", link=b"", prefix=b"", mode=b"0000644\0"):
    """One raw ustar header, for fields that no library writes."""
    h = bytearray(512)
    h[0:len(name[:100])] = name[:100]
    h[100:108], h[108:116], h[116:124] = mode, b"0000000\0", b"0000000\0"
    h[124:136], h[136:148] = size_field, b"14524477400\0"
    h[156:157], h[157:157 + len(link)] = kind, link
    h[257:265] = b"ustar\0" + b"00"
    h[345:345 + len(prefix)] = prefix
    h[148:156] = b" " * 8
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h)


END = b"\0" * 1024
GOOD = [member("a/b", data=b"hello"), member("a/l", tarfile.SYMTYPE, linkname="b")]


def pax(records, rest):
    body = b"".join(records)
    size = b"%011o\0" % len(body)
    return header(b"PaxHeader", size, b"x") + body + b"\0" * (-len(body) % 512) + rest


def record(key, value):
    n = len(key) + len(value) + 3
    while True:
        text = b"%d %s=%s\n" % (n, key, value)
        if len(text) == n:
            return text
        n = len(text)


def build():
    link, hard = tarfile.SYMTYPE, tarfile.LNKTYPE
    out = "../outside"
    # what may be there
    case("a plain archive", tar(*GOOD))
    case("one with gzip", gzip.compress(tar(*GOOD)))
    case("GNU's format", tar(*GOOD, form=tarfile.GNU_FORMAT))
    case("a long name in GNU's format", tar(member("d/" * 40 + "x" * 200), form=tarfile.GNU_FORMAT))
    case("names with ./ before them", tar(member("./", tarfile.DIRTYPE, mode=0o755), member("./a")))
    case("a directory that comes after what is in it",
         tar(member("a/b"), member("a", tarfile.DIRTYPE, mode=0o500), member("c")))
    case("a name that is not UTF-8", tar(member("a\udcff\udcfe")))
    case("set-id bits", tar(member("a", mode=0o6755), member("d", tarfile.DIRTYPE, mode=0o7777)))
    case("a link to a sibling directory", tar(member("d/x"), member("e/l", link, linkname="../d/x")))
    # names
    for name in ("../outside", "a/../../outside", "/tmp/outside", "a/..", "..", "./../outside",
                 "a/./../../outside", "//outside", "a/b/../../../outside"):
        case(f"the name {name}", header(name.encode()) + END, "name")
    case("an absolute directory", header(b"/etc/x", kind=b"5") + END, "absolute")
    case("an empty name", header(b"") + END, "")
    case("a name over the prefix field", header(b"outside", prefix=b"../..") + END, "..")
    case("an absolute prefix", header(b"outside", prefix=b"/tmp") + END, "absolute")
    case("a pax path that leaves", pax([record(b"path", b"../outside")], header(b"a") + END), "..")
    case("a pax path with a NUL", pax([record(b"path", b"a\0/../../x")], header(b"a") + END), "any")
    case("a component of 300 bytes", tar(member("x" * 300)), "255")
    case("a name of 100 directories", tar(member("d/" * 100 + "x")), "deeper")
    case("a name of 1 MiB", pax([record(b"path", b"d/" * 500000 + b"x")], header(b"a") + END), "")
    case("control characters in a bad name", tar(member("../\x1b[31mred\x07")), "..")
    # links
    for target in ("/etc/passwd", "..", "../..", out, "a/../../outside", "x/../.."):
        case(f"a link to {target}", tar(member("l", link, linkname=target)), "link")
    case("a link deep down that leaves", tar(member("a/b/l", link, linkname="../../../x")), "out")
    case("an empty link", header(b"l", kind=b"2") + END, "")
    case("a file below a link", tar(member("d", tarfile.DIRTYPE, mode=0o755),
                                    member("l", link, linkname="d"), member("l/x")), "no directory")
    case("a directory below a link", tar(member("l", link, linkname="."),
                                         member("l/x", tarfile.DIRTYPE)), "no directory")
    case("a link where a file is", tar(member("a"), member("a", link, linkname="b")), "twice")
    case("a file where a link is", tar(member("a", link, linkname="b"), member("a")), "twice")
    case("a chain of links that leaves",
         tar(member("a", tarfile.DIRTYPE, mode=0o755), member("a/up", link, linkname=".."),
             member("l", link, linkname="a/up/../outside")), "out")
    case("a directory where a link is", tar(member("a", link, linkname="b"),
                                            member("a", tarfile.DIRTYPE)), "twice")
    # kinds
    case("a hard link inside", tar(member("a"), member("b", hard, linkname="a")), "hard link")
    case("a hard link out", tar(member("b", hard, linkname="/etc/passwd")), "hard link")
    case("a device", tar(member("a", tarfile.CHRTYPE, devmajor=1, devminor=3)), "device")
    case("a disk", tar(member("a", tarfile.BLKTYPE, devmajor=8, devminor=0)), "device")
    case("a fifo", tar(member("a", tarfile.FIFOTYPE)), "fifo")
    case("an unknown type", header(b"a", kind=b"q") + END, None)  # by the standard, a file
    # twice
    case("a file twice", tar(member("a", data=b"1"), member("a", data=b"2")), "twice")
    case("a file below a file", tar(member("a"), member("a/b")), "no directory")
    case("a directory where a file is", tar(member("a"), member("a", tarfile.DIRTYPE)), "twice")
    # sizes
    case("a size of 2^63-1", header(b"a", b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7) + END, "")
    case("a size below 0", header(b"a", b"\xff" * 12) + END, "")
    case("a size of 8 GiB with nothing behind it", header(b"a", b"77777777777\0") + END, "")
    sparse = [record(b"GNU.sparse.major", b"1"), record(b"GNU.sparse.minor", b"0"),
              record(b"GNU.sparse.name", b"a"), record(b"GNU.sparse.realsize", b"%d" % (1 << 50))]
    table = b"1\n0\n0\n"
    case("a hole of a PiB", pax(sparse, header(b"a", b"%011o\0" % 512) + table.ljust(512, b"\0") + END),
         "limit")
    case("a hole of 1 GiB under a limit of 1 MiB",
         pax(sparse[:3] + [record(b"GNU.sparse.realsize", b"%d" % (1 << 30))],
             header(b"a", b"%011o\0" % 512) + table.ljust(512, b"\0") + END), "limit",
         "--max-size", "1MiB")
    wild = b"3\n1000\n5\n10\n5\n0\n5\n"
    case("a table of holes that goes back",
         pax(sparse[:3] + [record(b"GNU.sparse.realsize", b"2000")],
             header(b"a", b"%011o\0" % 1024) + wild.ljust(512, b"\0") + b"x" * 512 + END), "")
    case("more bytes than the limit", tar(member("a", data=b"x" * 2 * MIB)), "limit",
         "--max-size", "1MiB")
    case("many files that are together over the limit",
         tar(*[member(f"f{i}", data=b"x" * 1000) for i in range(100)]), "limit",
         "--max-size", "50KiB")
    case("more entries than the limit", tar(*[member(f"f{i}") for i in range(200)]), "limit",
         "--max-entries", "100")
    # bombs
    zeros = gzip.compress(header(b"a", b"%011o\0" % (3 << 30)) + b"\0" * (64 * MIB), 9)
    piece = gzip.compress(b"\0" * (64 * MIB), 9)
    case("gzip that grows to 3 GiB", zeros + piece * 47 + gzip.compress(END), "each byte")
    case("a bomb of names", gzip.compress(tar(*[member(f"{i:05d}" + "n" * 90) for i in range(20000)])),
         "limit", "--max-entries", "1000")
    # damage
    whole = tar(*GOOD, member("c", data=b"y" * 5000))
    case("nothing at all", b"", "")
    case("one byte", b"x", "")
    for cut in (100, 512, 700, 1024, 1600, 3000, len(whole) // 2):
        case(f"cut off after {cut} bytes", whole[:cut], "")
    case("cut off at the end of an entry", tar(member("a", data=b"x" * 512))[:1024], "cut off")
    case("gzip cut off", gzip.compress(whole)[:-20], "")
    case("a wrong checksum of a header", whole[:10] + b"!" + whole[11:], "")
    rng = random.Random(1)
    case("garbage", rng.randbytes(10000), "")
    case("gzip of garbage", gzip.compress(rng.randbytes(10000)), "")
    case("gzip in gzip in gzip", gzip.compress(gzip.compress(gzip.compress(b"x" * 100))), "")
    # other formats that libarchive knows
    case("a zip", b"PK\3\4" + b"\0" * 26 + b"PK\5\6" + b"\0" * 18, "")
    case("a cpio", b"070701" + b"0" * 104 + b"TRAILER!!!\0", "")
    case("an ar", b"!<arch>\nx/              0           0     0     644     1         `\nxx", "")
    case("a 7z", b"7z\xbc\xaf\x27\x1c\0\4" + b"\0" * 100, "")
    case("a mtree", b"#mtree\n./a type=file contents=/etc/passwd\n", "")
    case("a shar", b"#!/bin/sh\n# This is a shell archive\ntouch /tmp/outside\n", "")
    case("bzip2", b"BZh91AY&SY" + b"\0" * 100, "")
    case("a warc", b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n", "")
    # random damage: whatever it says, nothing leaves
    for i in range(60):
        bad = bytearray(tar(*GOOD, member("../x"), member("l", link, linkname="/")) if i % 2 else whole)
        for _ in range(rng.randrange(1, 12)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        case(f"damage {i}", bytes(bad), "any")


def look(base):
    """All that is there but for what the unpacking may make, with times."""
    found = {}
    for path, dirs, files in os.walk(base):
        for name in dirs + files:
            full = os.path.join(path, name)
            st = os.lstat(full)
            found[full] = (st.st_mode, st.st_size, None if os.path.isdir(full) else st.st_mtime_ns)
    return found


def inside(target):
    """Why what was unpacked is not as it must be, or None."""
    for path, dirs, files in os.walk(target):
        for name in dirs + files:
            full = os.path.join(path, name)
            if os.lstat(full).st_mode & 0o7000:
                return f"{name} has a set-id bit"
            real = os.path.realpath(full)
            if real != target and not real.startswith(target + "/"):
                return f"{name} leads to {real}"
    return None


def bounded():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, resource.RLIM_INFINITY))


def meet(base, name, data, words, options):
    """Why it failed, or None."""
    file, target = f"{base}/in.tar", f"{base}/room/target"
    with open(file, "wb") as f:
        f.write(data)
    before = look(base)
    began = time.monotonic()
    p = subprocess.Popen([PROGRAM, "unpack", file, "--dir", target, *options],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         preexec_fn=bounded)
    try:
        _, err = p.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        p.kill()
        return f"it took more than {SECONDS} s"
    took = time.monotonic() - began
    text = err.decode("utf-8", "surrogateescape")
    if any(ord(c) < 32 and c != "\n" for c in text):
        return f"control characters in {text!r}"
    there = os.path.lexists(target)
    wrong = inside(target) if there else None
    if there and words != "any" and p.returncode != 0:
        wrong = wrong or "it failed, and left a directory"
    if there:
        subprocess.run(["chmod", "-R", "u+rwx", target], check=True)
        shutil.rmtree(target)
    if look(base) != before:
        wrong = wrong or f"something else changed: {set(look(base)) ^ set(before)}"
    if wrong:
        return wrong
    if words == "any":
        return None if p.returncode in (0, 1, 5) else f"exit code {p.returncode}: {text}"
    if words is None:
        return None if p.returncode == 0 and there else f"exit code {p.returncode}: {text}"
    if p.returncode not in (1, 5) or "in.tar" not in text:
        return f"exit code {p.returncode} after {took:.1f} s: {text}"
    if "signal" in text or "gone" in text:
        return f"the helper did not say why: {text}"
    return None if words in text else f"no {words!r} in {text}"


def main():
    build()
    base = os.path.realpath(tempfile.mkdtemp())
    os.mkdir(f"{base}/room")
    with open(f"{base}/outside", "w", encoding="utf-8") as f:
        f.write("untouched\n")
    try:
        for i, one in enumerate(cases):
            why = meet(base, *one)
            print(f"{'not ' if why else ''}ok {i + 1} - {one[0]}", flush=True)
            if why:
                print(f"# {why}")
    finally:
        shutil.rmtree(base)
    print(f"1..{len(cases)}")


if __name__ == "__main__":
    sys.exit(main())
