# ckpt-lua. `make` leaves the runner as ./ckpt-lua and the library in build/; `make help` lists
# the rest. Nothing needs to be installed before: each target first runs .ci/setup, which installs
# what is missing (SETUP=no leaves that out).
#
#   SANITIZE=address,undefined   builds with sanitizers, in a folder of its own
#   BUILD=DIR                    builds elsewhere; the runner is then DIR/ckpt-lua
#   ONLY=text                    tests only the files whose path has this text
#   V=1                          shows the whole commands

comma := ,
Q := $(if $(V),,@)
SANITIZE ?=
BUILD := build$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))
RUNNER := $(if $(filter build,$(BUILD)),ckpt-lua,$(BUILD)/ckpt-lua)
CC := gcc
SHELL := /bin/bash

# As many jobs as processors, unless an outer make hands out the jobs.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# libarchive ends its process when memory runs out: it lives in a helper, never in the library.
ARCHIVE_SRC := engine/prims/tar.c $(wildcard engine/archive/*.c)
LIB_SRC := $(filter-out $(ARCHIVE_SRC),$(wildcard $(patsubst %,engine/%/*.c,base prims store core) engine/*.c))
RUNNER_SRC := $(wildcard engine/runner/*.c)
SPEC_SRC := $(wildcard spec/c/*.c)
FUZZ_SRC := $(wildcard spec/fuzz/*.c)
SIM_SRC := $(wildcard spec/sim/*.c)
# The sandbox: what its two forms share (a program, a module), and each one's own part.
POLICY_OWN := engine/lua/policy_host.c engine/lua/policy_entry.c
POLICY_SRC := $(filter-out $(POLICY_OWN),$(wildcard engine/lua/policy_*.c))
TRUSTED_SRC := $(wildcard engine/lua/lua_*.c)
LIBEXEC := $(patsubst %,$(BUILD)/%,libexec/ckpt-policy libexec/ckpt-policy.so libexec/ckpt-script \
  libexec/ckpt-archive lua/ckpt/core.so)
SRC := $(LIB_SRC) $(ARCHIVE_SRC) $(RUNNER_SRC) $(wildcard engine/lua/*.c) $(SPEC_SRC) $(FUZZ_SRC) $(SIM_SRC)

obj = $(1:%.c=$(BUILD)/%.o)
TEST_SRC := $(filter spec/c/test_%,$(SPEC_SRC))
TESTS := $(TEST_SRC:%.c=$(BUILD)/%) $(BUILD)/spec/fuzz/replay
# What takes over half a minute in spec/world stands in its folder long, which only test-world enters.
SPECS := $(sort $(shell find spec -path spec/world/long -prune -o \( -name '*_spec.lua' -o -name '*_spec.sh' \) -print))
LUA := $(wildcard lua policies examples spec)
# What runs: all, or those that ONLY picks.
only = $(if $(ONLY),$(foreach t,$1,$(if $(findstring $(ONLY),$t),$t)),$1)

# Expanded in recipes only: on a fresh machine pkg-config appears while make is running.
PACKAGES := jansson libxxhash libcrypto libcurl expat
PKG_CFLAGS = $(shell pkg-config --cflags $(PACKAGES) luajit)
LIBS = -Wl,--as-needed $(shell pkg-config --libs $(PACKAGES)) -lpthread
LUA_LIBS = -Wl,--as-needed $(shell pkg-config --libs jansson luajit) -lm

WARN := -Wall -Wextra -Werror -Wformat-security
LANG_FLAGS = -std=c11 -D_GNU_SOURCE -Iengine $(WARN) $(PKG_CFLAGS)
# Without -fno-sanitize-recover undefined behaviour would be printed, and the test would pass.
SAN := $(if $(SANITIZE),-DCKPT_SANITIZED -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
CFLAGS := -O2 -g
# As Debian builds its own. Sanitizers look at more, and fortify would hide calls from them; it works
# with an optimiser only.
HARDEN := $(if $(SANITIZE),,-fstack-protector-strong $(if $(filter -O1 -O2 -O3,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARD_LINK := $(if $(SANITIZE),,-Wl$(comma)-z$(comma)relro -Wl$(comma)-z$(comma)now)
PROGRAM = $(CC) $(SAN) $(if $(SANITIZE),,-pie) $(HARD_LINK)
MODULE = $(CC) -shared $(SAN) $(HARD_LINK)
COMPILE = $(CC) $(LANG_FLAGS) -fPIC -fvisibility=hidden -MMD -MP $(HARDEN) $(CFLAGS) $(SAN)

.PHONY: all setup help test test-c check asan tsan valgrind fuzz fuzz-tree demo test-hostile test-world test-failn test-power test-net test-kill test-crash test-crash-s3 test-zombie test-ranks test-grace test-sim contract contract-mutants test-long clean servers FORCE
.DELETE_ON_ERROR:
.SECONDARY:

## all: the library (build/libckpt.a, .so), its helpers and the runner (./ckpt-lua)
all: $(BUILD)/libckpt.a $(BUILD)/libckpt.so $(LIBEXEC) $(if $(RUNNER_SRC),$(RUNNER))

## setup: install what the other targets need; they do it themselves
setup:
	@$(if $(filter no,$(SETUP)),:,.ci/setup)

help:
	@sed -n 's/^## //p' Makefile

# --- build ---------------------------------------------------------------------------------

$(BUILD)/%.o: %.c Makefile | setup
	@mkdir -p $(@D) && echo "cc $<"
	$(Q)$(COMPILE) -c -o $@ $<

# Changes only when a source came or went: else a removed file would live on in the archive.
$(BUILD)/sources: FORCE
	@mkdir -p $(@D); echo '$(SRC)' | cmp -s - $@ || echo '$(SRC)' >$@

$(BUILD)/libckpt.a: $(call obj,$(LIB_SRC)) $(BUILD)/sources
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(BUILD)/libckpt.so: $(call obj,$(LIB_SRC)) $(BUILD)/sources
	@echo "link $@"
	$(Q)$(MODULE) -Wl,-soname,libckpt.so.0 $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
	  -o $@ $(filter %.o,$^) $(LIBS)
	@ln -sf libckpt.so $@.0

$(RUNNER): $(call obj,$(RUNNER_SRC)) $(BUILD)/libckpt.a
	@echo "link $@"
	$(Q)$(PROGRAM) -o $@ $(filter %.o %.a,$^) $(LIBS)

# The rule library is built in: where policies run no file can be opened.
TEXTS := lua/ckpt/sandbox.lua lua/ckpt/policy.lua
$(BUILD)/policy_texts.c: engine/lua/embed.lua $(TEXTS) $(wildcard lua/ckpt/policy/*.lua) | setup
	@mkdir -p $(@D) && echo "embed $@"
	$(Q)luajit $< $@ $(TEXTS)

$(BUILD)/policy_texts.o: $(BUILD)/policy_texts.c Makefile
	$(Q)$(COMPILE) -c -o $@ $<

$(BUILD)/policy.a: $(call obj,$(POLICY_SRC) $(patsubst %,engine/base/%.c,buf err json shown)) \
    $(BUILD)/policy_texts.o $(BUILD)/sources
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(BUILD)/libexec/ckpt-policy: $(BUILD)/engine/lua/policy_host.o $(BUILD)/policy.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(PROGRAM) -o $@ $(filter %.o %.a,$^) $(LUA_LIBS)

$(BUILD)/libexec/ckpt-policy.so: $(BUILD)/engine/lua/policy_entry.o $(BUILD)/policy.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(MODULE) $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(filter %.o %.a,$^) $(LUA_LIBS)

$(BUILD)/libexec/ckpt-archive: $(call obj,$(ARCHIVE_SRC) engine/lua/policy_lockdown.c \
    $(patsubst %,engine/base/%.c,bundle err))
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(PROGRAM) -o $@ $(filter %.o,$^) -larchive

# For trusted Lua: the program behind `ckpt-lua exec`, and `require "ckpt.core"` of any LuaJIT, which
# brings its own lua_*.
$(BUILD)/libexec/ckpt-script: $(call obj,engine/lua/script.c $(TRUSTED_SRC)) $(BUILD)/libckpt.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(PROGRAM) -Wl,-E -o $@ $(filter %.o %.a,$^) $(LIBS) $(LUA_LIBS)

$(BUILD)/lua/ckpt/core.so: $(call obj,$(TRUSTED_SRC)) $(BUILD)/libckpt.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(MODULE) -o $@ $(filter %.o %.a,$^) $(LIBS)

# The runner's parts, for their tests: all but its main().
$(BUILD)/runner.a: $(call obj,$(filter-out %/main.c,$(RUNNER_SRC))) $(BUILD)/sources
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(BUILD)/spec/c/test_%: $(BUILD)/spec/c/test_%.o \
    $(call obj,$(filter-out $(TEST_SRC),$(SPEC_SRC))) $(BUILD)/runner.a $(BUILD)/policy.a $(BUILD)/libckpt.a
	@echo "link $@"
	$(Q)$(CC) $(SAN) -o $@ $(filter %.o %.a,$^) -lcmocka $(LIBS) $(LUA_LIBS)

$(BUILD)/spec/c/test_tar: $(BUILD)/engine/prims/tar.o
$(BUILD)/spec/c/test_tar: private LIBS += -larchive

# The targets of make fuzz: `replay` feeds them with their corpus, libFuzzer's main() with anything.
# What asks an S3 server gets its answers from the input.
FUZZ_WRAP := $(patsubst %,-Wl$(comma)--wrap=http_%,open close start wait done do)
FUZZ_OBJ := $(call obj,$(filter-out %/replay.c %/fuzz.c,$(FUZZ_SRC)) engine/prims/tar.c)
$(BUILD)/spec/fuzz/replay $(BUILD)/spec/fuzz/fuzz: $(BUILD)/spec/fuzz/%: $(BUILD)/spec/fuzz/%.o $(FUZZ_OBJ) \
    $(BUILD)/runner.a $(BUILD)/policy.a $(BUILD)/libckpt.a
	@echo "link $@"
	$(Q)$(CC) $(if $(filter %/fuzz,$@),$(subst fuzzer-no-link,fuzzer,$(SAN)),$(SAN)) $(FUZZ_WRAP) \
	  -o $@ $(filter %.o %.a,$^) $(LIBS) $(LUA_LIBS) -larchive

-include $(patsubst %.o,%.d,$(call obj,$(SRC)))

# --- tests: the last line is "N passed, N failed, N skipped" --------------------------------

# A runner that was built elsewhere does not stand beside policies/.
TEST_ENV = CKPT_LUA='$(abspath $(RUNNER))' CKPT_BUILD='$(abspath $(BUILD))' SANITIZE=$(SANITIZE) \
  $(if $(filter build,$(BUILD)),,CKPT_POLICIES='$(CURDIR)/policies' CKPT_LUADIR='$(CURDIR)/lua')

## test: all tests
test: all $(TESTS) $(BUILD)/sim/sim servers
	@$(TEST_ENV) spec/run $(call only,$(TESTS) $(SPECS))

# What a spec needs and no package has. Where it cannot be had, those specs are skipped.
servers: | setup
	@$(if $(filter no,$(SETUP)),:,for s in versitygw toxiproxy; do spec/servers/$$s.sh install || :; done)

## test-c: the C tests alone
test-c: $(TESTS) $(LIBEXEC)
	@$(TEST_ENV) spec/run $(call only,$(TESTS))

# The sanitizers of this gcc lose their shadow memory to a kernel with much address randomisation;
# where a container forbids setarch, it goes without.
FIXED_MAP = $(shell setarch -R true 2>/dev/null && echo setarch -R)

## asan: all tests with the address and undefined-behaviour sanitizers
asan:
	@ASAN_OPTIONS=handle_segv=2:exitcode=99 UBSAN_OPTIONS=exitcode=99 $(FIXED_MAP) $(MAKE) --no-print-directory \
	  BUILD=build/asan SANITIZE=address,undefined CFLAGS='-O1 -g' test

## tsan: the C tests with the thread sanitizer (LuaJIT is not instrumented)
tsan:
	@TSAN_OPTIONS=die_after_fork=0$(patsubst %,:suppressions=%,$(wildcard $(CURDIR)/spec/tsan.supp)) \
	  $(FIXED_MAP) $(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread CFLAGS='-O1 -g' test-c

## valgrind: the C tests of what parses, stores and commits under valgrind (VALGRIND=text: others)
# Not those that measure time or memory, start programs of ours by the dozen, or need a server: they
# take minutes there, and the sanitizers run them.
VALGRIND ?= buf err json seconds uri bundle match hash fs fs_beneath fs_tree manifest manifest_json runlog \
  runlog_entries runlog_fold runlog_groups lease pins journal trail plan rules structure snapshot tree \
  transfer restore settle store_mem store_file xml sigv4 credentials flat options words durations text \
  last_rules verified io
VALGRIND_TESTS = $(filter $(patsubst %,$(BUILD)/spec/c/test_%,$(VALGRIND)),$(TESTS))
valgrind: $(VALGRIND_TESTS)
	@[ $(words $(VALGRIND)) = $(words $^) ] || { echo "valgrind: not each of these is a test: $(VALGRIND)"; exit 1; }; \
	  command -v valgrind >/dev/null || { echo "valgrind: skipped, it is not installed"; exit 1; }; \
	  $(TEST_ENV) TEST_WRAP="valgrind -q --error-exitcode=99 --leak-check=full \
	  --suppressions=spec/valgrind.supp" spec/run $(call only,$(VALGRIND_TESTS))

## demo: a training run that is killed, resumes, and ends equal to the bit
demo: all
	@CKPT_LUA='$(abspath $(RUNNER))' examples/demo.sh

## test-hostile: policies that loop, grow, reach out and lie, in both tiers; archives, logs,
##   manifests, listings, results, names and environments that somebody else chose
HOSTILE := $(patsubst %,$(BUILD)/spec/c/test_%,hook_probe policy_guard policy_serve policy_host)
test-hostile: $(HOSTILE) all
	@$(TEST_ENV) spec/run $(HOSTILE) $(sort $(wildcard spec/hostile/*_spec.*) spec/hostile/inputs.sh)

## test-world: what others do to a run: containers, users, full places, hostile stores, foreign data
test-world: all servers
	@$(TEST_ENV) TEST_TIMEOUT=$${TEST_TIMEOUT:-1200} spec/run \
	  $(call only,$(sort $(wildcard spec/world/*_spec.* spec/world/long/*_spec.*)))

## fuzz: T=name TIME=600: libFuzzer on one parser for so many seconds; without T on each of them
FUZZ_BUILD := build/fuzz
fuzz: | setup
	@$(MAKE) --no-print-directory SETUP=no CC=clang SANITIZE=fuzzer-no-link,address,undefined \
	  CFLAGS='-O1 -g' BUILD=$(FUZZ_BUILD) $(FUZZ_BUILD)/spec/fuzz/fuzz
	@spec/fuzz/run $(FUZZ_BUILD)/spec/fuzz/fuzz $(FUZZ_BUILD)/work $(or $(TIME),600) $(T)

## fuzz-tree: SEEDS=1000: random moves on a watched tree under sanitizers; adds up in docs/testing.md
fuzz-tree: | setup
	@$(FIXED_MAP) $(MAKE) --no-print-directory SETUP=no BUILD=build/asan SANITIZE=address,undefined \
	  CFLAGS='-O1 -g' build/asan/spec/c/test_detect_fuzz
	@ASAN_OPTIONS=handle_segv=2:exitcode=99 UBSAN_OPTIONS=exitcode=99 $(FIXED_MAP) \
	  nice spec/fuzz/tree.sh build/asan/spec/c/test_detect_fuzz $(or $(SEEDS),1000) docs/testing.md

## test-failn: FAILN_STRIDE=n: every call of every operation fails, one after the other (or each n-th)
test-failn: $(BUILD)/spec/c/test_failn
	@$(TEST_ENV) spec/run --shown spec/failn/failn.sh

## test-power: ROUNDS=12: power losses of a machine in User-Mode Linux, on ext4 and xfs
test-power: all
	@$(TEST_ENV) SETUP=$(SETUP) spec/run --shown spec/power/power.sh

## test-kill: SIGKILL at every system call of save, commit and restore
test-kill: all
	@$(TEST_ENV) spec/run --shown spec/crash/kill.sh

## test-crash: SIZE=1GiB N=50: one run, killed N times, compared byte for byte
test-crash: all
	@$(TEST_ENV) spec/run --shown spec/crash/crash.sh

## test-crash-s3: SIZE=1GiB N=50: the same with a bucket as its target
test-crash-s3: all servers
	@$(TEST_ENV) TARGET=s3 spec/run --shown spec/crash/crash.sh

## test-zombie: writers that are pushed aside and go on, clones, two launches of one job
test-zombie: all servers
	@$(TEST_ENV) spec/run --shown spec/zombie/zombie.sh spec/zombie/s3.sh

## contract: each of the 300 behaviours of the object library, and the test that shows it
contract: all servers
	@$(TEST_ENV) luajit spec/contract/list.lua

## contract-mutants: SEED=n COUNT=60: breaks so many of them, one at a time; a test must fail each time
contract-mutants: all servers
	@$(TEST_ENV) luajit spec/contract/mutants.lua $(if $(SEED),--seed $(SEED)) \
	  $(if $(filter all,$(COUNT)),--all,$(if $(COUNT),--count $(COUNT)))

## test-sim: SEED=n: the commit protocol on a seeded simulator, and each fault put back into it
test-sim: $(BUILD)/sim/sim
	@CKPT_BUILD='$(abspath $(BUILD))' SIM_COMPILE='$(COMPILE) -w' SIM_LINK='$(CC) $(SAN)' SIM_LIBS='$(LIBS)' \
	  SEED='$(SEED)' COUNT='$(COUNT)' $(if $(SEED),,spec/run --shown) spec/sim/run.sh

# The simulator links the log with small constants: its logs are short.
$(BUILD)/sim/scaled: spec/sim/faults.lua $(wildcard engine/core/runlog*.[ch]) Makefile | setup
	@rm -rf $@ && mkdir -p $@ && luajit $< --scaled $@ && echo "cc $@"
	$(Q)for c in $@/*.c; do $(COMPILE) -iquote $@ -iquote engine/core -c -o $${c%.c}.o $$c || exit 1; done

$(BUILD)/sim/sim: $(call obj,$(SIM_SRC)) $(BUILD)/sim/scaled $(BUILD)/libckpt.a
	@echo "link $@"
	$(Q)$(CC) $(SAN) -o $@ $(BUILD)/sim/scaled/*.o $(filter %.o %.a,$^) $(LIBS)

## test-ranks: RANKS=8 CHECKPOINTS=20: ranks that are killed at random, then fewer with a bucket
test-ranks: all servers
	@$(TEST_ENV) spec/run --shown spec/ranks/ranks.py spec/ranks/s3.sh

## test-grace: a grace that ends in the middle of an upload
test-grace: all servers
	@$(TEST_ENV) spec/run --shown spec/store/grace.sh

## test-net: COUNT=200: saves, restores and removals over a network that toxiproxy spoils
test-net: all servers
	@$(TEST_ENV) COUNT='$(COUNT)' spec/run --shown spec/net/net.sh

## test-long: all tests that take minutes, one after the other; SIZE, N, COUNT and the like as above
LONG := hostile world failn kill sim zombie ranks power net grace crash crash-s3
test-long: all servers
	@bad=; for t in $(LONG); do echo "== test-$$t"; $(MAKE) --no-print-directory test-$$t || bad="$$bad test-$$t"; done; \
	  [ -z "$$bad" ] || { echo "failed, or played nothing:$$bad"; exit 1; }

# --- check: one line for each step; each can be made alone ----------------------------------

STEPS := layers words gcc hardened clang tidy format lua shell
.PHONY: $(STEPS:%=check-%)

## check: layer order, warnings of gcc and clang, hardened binaries, clang-tidy, format, luacheck, shellcheck
check: $(STEPS:%=check-%)

check-layers: | setup
	@luajit spec/check_layers.lua engine && echo "layers: in order"

check-words: | setup
	@! grep -rnwE 'TODO|FIXME|XXX' $(wildcard engine $(LUA)) && echo "words: nothing left to do"

check-gcc: $(call obj,$(SRC))
	@echo "gcc: $(words $(SRC)) files without a warning"

check-hardened: all
	@spec/check_hardened.sh '$(SANITIZE)' $(RUNNER) $(BUILD)/libckpt.so $(LIBEXEC)

# The object stands for the headers that its source includes: what did not change is not read again.
$(BUILD)/%.clang: %.c $(BUILD)/%.o
	@clang -fsyntax-only $(LANG_FLAGS) $< && touch $@

$(BUILD)/%.tidy: %.c $(BUILD)/%.o .clang-tidy
	@clang-tidy --quiet $< -- $(LANG_FLAGS) 2>$@.log || { cat $@.log >&2; exit 1; }
	@touch $@

check-clang: $(SRC:%.c=$(BUILD)/%.clang)
	@echo "clang: $(words $^) files without a warning"

check-tidy: $(SRC:%.c=$(BUILD)/%.tidy)
	@echo "clang-tidy: $(words $^) files without a finding"

check-format: | setup
	@find engine spec/c spec/sim -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
	@echo "clang-format: nothing to change"

check-lua: | setup
	@luacheck -q --no-color $(LUA) | sed 's/^Total:/luacheck:/'; exit $${PIPESTATUS[0]}

check-shell: | setup
	@find . -name .git -prune -o -path ./build -prune -o -type f -exec \
	  awk 'FNR == 1 && (FILENAME ~ /\.sh$$/ || /^#!.*[\/ ](ba|da)?sh( |$$)/) { print FILENAME } { nextfile }' {} + | \
	  xargs shellcheck && echo "shellcheck: no finding"

clean:
	rm -rf build ckpt-lua
