# shellcheck shell=bash
# Machines in User-Mode Linux, for specs in shell: to be sourced.
#
#   lose_guest PID   the power of the machine goes whose kernel is that child of ours

# All descendants, first ones last: the guest's processes are children of its kernel's.
family() { # PID
  local child
  for child in $(pgrep -P "$1"); do family "$child"; done
  echo "$1"
}

# All are stopped first: else one could still begin another while they are killed.
lose_guest() { # PID
  local all
  mapfile -t all < <(family "$1")
  kill -STOP "${all[@]}" 2>/dev/null
  mapfile -t all < <(family "$1")
  kill -KILL "${all[@]}" 2>/dev/null
  wait "$1" 2>/dev/null
}
