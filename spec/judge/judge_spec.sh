#!/bin/bash
# A few histories of the outside judge; `make judge` has 1,000, and more stores. The same numbers each time: what the
# machine makes of them differs all the same.
set -u
cd "$(dirname "$0")/../.." || exit 1
stores=dir,versitygw
XDG=${XDG_CACHE_HOME:-$HOME/.cache}/ckpt-lua/servers
[[ -x $XDG/bin/versitygw ]] || stores=dir
exec spec/judge/judge.py --seed 7 --count 12 --stores "$stores" --jobs 4 --minutes 0.4
