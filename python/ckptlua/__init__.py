"""Tells the `ckpt-lua run` that a program runs under what it has saved, and hears when it asks to save now.

Where there is none (no CKPT_SOCKET in the environment) nothing happens, so a program may call it always.
"""
import json
import os
import signal
import socket

__version__ = "0.1.0"
__all__ = ["notify", "saved", "Asked"]


def _ask(line, seconds):
    address = os.environ.get("CKPT_SOCKET")
    if not address:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(seconds)
        s.connect(address)
        s.sendall(json.dumps(line).encode() + b"\n")
        with s.makefile(encoding="utf-8") as answer:
            said = json.loads(answer.readline() or '{"error":"it has closed the connection"}')
            if "error" in said:
                raise ValueError(said["error"])
            return [answer.readline().rstrip("\n") for _ in range(said.get("lines", 0))]


def _plain(value):
    """What a tensor of one element holds, of torch or numpy."""
    try:
        return value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):
        return None  # of several


def _numbers(metrics):
    plain = {name: _plain(value) for name, value in metrics.items()}
    return {name: value for name, value in plain.items() if isinstance(value, (bool, int, float, str))}


def notify(seconds=10, /, **result):
    """Tells a result: notify(loss=0.2, step=100). With checkpoint=PATH it belongs to that checkpoint. Raises OSError
    where the run is gone, or has not answered after `seconds`, ValueError for what it does not take; False without a
    run."""
    return _ask(_numbers(result), seconds) is not None


def saved(path, /, **metrics):
    """Tells that the framework has saved `path`, and its metrics, one of which may not be called `checkpoint`. A
    training never fails for it."""
    try:
        return notify(**{**metrics, "checkpoint": os.path.abspath(path)})
    except (OSError, ValueError) as e:
        print(f"ckptlua: {path}: the run was not told: {e}", flush=True)
        return False


class Asked:
    """True from when the runner asks to save and end, by SIGTERM. What handled the signal before still does."""

    def __init__(self, signals=(signal.SIGTERM,)):
        self._asked = False
        for signo in signals if os.environ.get("CKPT_SOCKET") else ():
            signal.signal(signo, self._take(signal.getsignal(signo)))

    def _take(self, before):
        def handler(signo, frame):
            self._asked = True
            if callable(before) and before is not signal.default_int_handler:
                before(signo, frame)
        return handler

    def __bool__(self):
        return self._asked
