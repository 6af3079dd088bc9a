#!/bin/bash
# What it costs to put 2 GiB, and 10,000 small files, into a bucket: ckpt.store beside obstore and pyarrow, one after
# the other against one server, in turns, so that what else the machine does hits all alike. Each measures its own
# processor time and wall time around the transfer. A table of all runs, and the medians with their ratios to
# obstore's, are printed and written to build/bench/put.txt. Nothing here fails for being slow.
#
# Environment: GIB (2), FILES (10000, of 4 KiB), RUNS (5). The peers are installed once, below ~/.cache/ckpt-lua.
set -eu
cd "$(dirname "$0")/../.."
# shellcheck source=spec/servers/s3.sh
. spec/servers/s3.sh
GIB=${GIB:-2} FILES=${FILES:-10000} RUNS=${RUNS:-5}
peers=${XDG_CACHE_HOME:-$HOME/.cache}/ckpt-lua/bench-put
out=${CKPT_BUILD:-build}/bench
mkdir -p "$out"
if ! "$peers/bin/python" -c 'import obstore, pyarrow' 2>/dev/null; then
  python3 -m venv "$peers"
  "$peers/bin/pip" --quiet install obstore pyarrow
fi
# In memory, where there is room: a disk would be measured, not the clients.
[[ ! -d /dev/shm ]] || export TMPDIR=/dev/shm
s3_begin || exit 0
export CKPT_S3_SIGN_BODY=no # as the peers send it
mkdir "$S3_DIR/large" "$S3_DIR/small"
head -c "${GIB}G" /dev/urandom >"$S3_DIR/large/model.bin"
python3 - "$S3_DIR/small" "$FILES" <<'PY'
import os, sys
for i in range(int(sys.argv[2])):
    place = f"{sys.argv[1]}/{i // 1000}"
    os.makedirs(place, exist_ok=True)
    with open(f"{place}/{i}.bin", "wb") as f:
        f.write(os.urandom(4096))
PY
one() { # CLIENT WHAT
  case $1 in
    ckpt) CKPT_LUADIR=$PWD/lua "${CKPT_BUILD:-build}/libexec/ckpt-script" spec/bench/put.lua "$S3_DIR/$2" "s3://ckpt-test/$1-$2" ;;
    *) "$peers/bin/python" spec/bench/put.py "$1" "$S3_DIR/$2" "$1-$2" ;;
  esac
}
: >"$out/put.tsv"
for ((run = 0; run < RUNS; run++)); do
  for what in large small; do
    for client in ckpt obstore pyarrow; do
      # A peer that a server is too much for is said to have failed.
      figures=$(one "$client" "$what" 2>"$out/put.err") || { [[ $client != ckpt ]] || cat "$out/put.err"; figures="failed failed"; }
      printf '%s\t%s\t%s\n' "$what" "$client" "$figures" >>"$out/put.tsv"
      rm -rf "${S3_DATA:?}/$client-$what"
    done
  done
done
python3 - "$out/put.tsv" "$GIB" "$FILES" <<'PY' | tee "$out/put.txt"
import collections, datetime, os, statistics, sys
rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    what, client, cpu, wall = line.split()
    rows[what, client].append((float(cpu), float(wall)) if cpu != "failed" else None)
print(f"{datetime.date.today()}, {os.cpu_count()} processors, {sys.argv[2]} GiB and {sys.argv[3]} files; "
      f"medians of {len(next(iter(rows.values())))} runs, seconds; ratios to obstore, run by run")
print(f"{'':6} {'client':8} {'cpu':>7} {'wall':>7} {'cpu/obstore':>12} {'wall/obstore':>13}")
for (what, client), runs in rows.items():
    peer = rows[what, "obstore"]
    pairs = [(a, b) for a, b in zip(runs, peer) if a and b]
    if not pairs:
        print(f"{what:6} {client:8} failed")
        continue
    ratio = [statistics.median(a[i] / b[i] for a, b in pairs) for i in (0, 1)]
    cpu, wall = (statistics.median(a[i] for a, _ in pairs) for i in (0, 1))
    print(f"{what:6} {client:8} {cpu:7.2f} {wall:7.2f} {ratio[0]:12.2f} {ratio[1]:13.2f}")
PY
