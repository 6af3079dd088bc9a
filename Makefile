# ckpt-lua. `make` leaves the runner as ./ckpt-lua and the library in build/; `make help` lists
# the rest. Nothing needs to be installed before: each target first runs .ci/setup, which installs
# what is missing (SETUP=no leaves that out).
#
#   SANITIZE=address,undefined   builds with sanitizers, in a folder of its own
#   BUILD=DIR                    builds elsewhere; the runner is then DIR/ckpt-lua
#   FAULTS=yes                   builds programs that leave a rule out when told to, for `make judge-faults`
#   ONLY=text                    tests only the files whose path has this text
#   V=1                          shows the whole commands
#   PREFIX=/usr/local DESTDIR=   where make install puts it

comma := ,
Q := $(if $(V),,@)
SANITIZE ?=
FAULTS ?=
BUILD := build$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))$(if $(FAULTS),/faults)
RUNNER := $(if $(filter build,$(BUILD)),ckpt-lua,$(BUILD)/ckpt-lua)
CC := gcc
CFLAGS := -O2 -g
SHELL := /bin/bash

# No rule is hidden in make itself: it looks for none, and finds none by accident.
MAKEFLAGS += --no-builtin-rules
# As many jobs as processors, unless an outer make hands out the jobs.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

.DEFAULT_GOAL := all
.PHONY: setup help clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:

# In the order in which `make help` tells of them.
PARTS := $(patsubst %,mk/%.mk,sources compile build install test long sim fuzz check)
include $(PARTS)

## setup: install what the other targets need; they do it themselves
setup:
	@$(if $(filter no,$(SETUP)),:,.ci/setup)

help:
	@sed -n 's/^## //p' $(PARTS) Makefile

## clean: removes what was made here
clean:
	rm -rf build ckpt-lua
