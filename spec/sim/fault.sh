#!/bin/bash
# spec/sim/fault.sh NAME: puts that fault back into a copy of what it is in, builds the simulator with
# it, and runs it until it is caught. Called by run.sh, which says where and how to compile.
set -u
name=$1
dir=$CKPT_BUILD/sim/faults/$name
most=${SIM_FAULT_SCHEDULES:-20000}

fail() {
  echo "$name: $*"
  exit 1
}

rm -rf "$dir"
mkdir -p "$dir"
how=$(luajit spec/sim/faults.lua "$name" "$dir") || fail "it cannot be put back"
objects=()
for source in "$dir"/*.c; do
  # shellcheck disable=SC2086 # the compiler and its flags are words
  $SIM_COMPILE -iquote "$dir" -iquote spec/sim -c -o "${source%.c}.o" "$source" ||
    fail "it does not compile"
  objects+=("${source%.c}.o")
done
# What was edited stands for what it was made of.
for object in "$CKPT_BUILD"/sim/scaled/*.o "$CKPT_BUILD"/spec/sim/*.o; do
  [[ -e $dir/${object##*/} ]] || objects+=("$object")
done
# shellcheck disable=SC2086
$SIM_LINK -o "$dir/sim" "${objects[@]}" "$CKPT_BUILD/engine.a" $SIM_LIBS || fail "it does not link"
# The seeds that once showed it come first: what shows seldom takes long to be found again.
read -ra seeds < <(sed -n "s/^[a-z]*\([0-9][0-9]*\) $name\$/\1/p" spec/sim/seeds.txt | tr '\n' ' ')
code=0
# shellcheck disable=SC2086
((${#seeds[@]})) && { "$dir/sim" $how --seeds "${seeds[@]}" >"$dir/out" || code=$?; }
caught="caught by a known seed"
if ((code != 3)); then
  # shellcheck disable=SC2086
  "$dir/sim" $how 1 "$most" >"$dir/out"
  code=$?
  caught=$(grep '^caught' "$dir/out")
fi
case $code in
3) echo "$name: $caught; $(grep '^violation' "$dir/out" | cut -c1-160)" ;;
*) fail "not caught in $most schedules" ;;
esac
rm -f "$dir"/*.o "$dir/sim"
