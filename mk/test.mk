# The tests; the last line is "N passed, N failed, N skipped".

TEST_PROGRAMS := $(TEST_SRC:%.c=$(BUILD)/%)
TESTS := $(TEST_PROGRAMS) $(BUILD)/spec/fuzz/replay
# What takes over half a minute in spec/world or spec/hostile stands in a folder long there, which only
# test-world and test-hostile enter.
SPECS := $(sort $(shell find spec -name long -prune -o \( -name '*_spec.lua' -o -name '*_spec.sh' \) -print))

# Those that ONLY picks, or all.
only = $(if $(ONLY),$(foreach t,$1,$(if $(findstring $(ONLY),$t),$t)),$1)
# The test programs of these names, wherever they are: for io the one of test_io.c.
tests = $(foreach name,$1,$(filter %/test_$(name),$(TEST_PROGRAMS)))

# A runner that was built elsewhere does not stand beside policies/.
TEST_ENV = CKPT_LUA='$(abspath $(RUNNER))' CKPT_BUILD='$(abspath $(BUILD))' SANITIZE=$(SANITIZE) \
  $(if $(filter build,$(BUILD)),,CKPT_POLICIES='$(CURDIR)/policies' CKPT_LUADIR='$(CURDIR)/lua')

.PHONY: test test-c servers asan tsan valgrind demo
## test: all tests
# Some specs in shell play C programs; else only those that ONLY picks are built.
test: all $(if $(or $(if $(ONLY),,all),$(filter %.sh,$(call only,$(SPECS)))),$(TESTS) $(BUILD)/sim/sim,$(call only,$(TESTS))) servers
	@$(TEST_ENV) spec/run_tests $(call only,$(TESTS) $(SPECS))

## test-c: the C tests alone
test-c: $(call only,$(TESTS)) $(LIBEXEC)
	@$(TEST_ENV) spec/run_tests $(call only,$(TESTS))

# What a spec needs and no package has: servers, the version before, the checker of types. Where it cannot be had, those specs are skipped.
servers: | setup
	@$(if $(filter no,$(SETUP)),:,for s in versitygw toxiproxy fakegcs boto google; do spec/servers/$$s.sh install || :; done; spec/older/v1.0.sh install || :; spec/types/emmylua.sh install || :)

$(TEST_PROGRAMS): %: %.o $(call obj,$(TEST_HELP)) $(BUILD)/runner.a $(BUILD)/policy.a $(BUILD)/engine.a mk/test.mk
	@echo "link $@"
	$(Q)$(CC) $(SAN) -o $@ $(filter %.o %.a,$^) -lcmocka $(LIBS) $(LUA_LIBS)

$(call tests,tar): $(call obj,$(filter %/tar.c,$(ARCHIVE_SRC)))
$(call tests,tar): private LIBS += -larchive

# The sanitizers of this gcc lose their shadow memory to a kernel with much address randomisation;
# where a container forbids setarch, it goes without.
FIXED_MAP = $(shell setarch -R true 2>/dev/null && echo setarch -R)

## asan: all tests with the address and undefined-behaviour sanitizers
asan:
	@TEST_TIMEOUT=$${TEST_TIMEOUT:-900} ASAN_OPTIONS=handle_segv=2:exitcode=99 UBSAN_OPTIONS=exitcode=99 $(FIXED_MAP) $(MAKE) --no-print-directory \
	  BUILD=build/asan SANITIZE=address,undefined CFLAGS='-O1 -g' test

## tsan: the C tests with the thread sanitizer (LuaJIT is not instrumented)
# Some run ten times as long there.
tsan:
	@TEST_TIMEOUT=$${TEST_TIMEOUT:-1200} TSAN_OPTIONS=die_after_fork=0$(patsubst %,:suppressions=%,$(wildcard $(CURDIR)/spec/tsan.supp)) \
	  $(FIXED_MAP) $(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread CFLAGS='-O1 -g' test-c

## valgrind: the C tests of what parses, stores and commits under valgrind (VALGRIND=text: others)
# Not those that measure time or memory, start programs of ours by the dozen, or need a server: they
# take minutes there, and the sanitizers run them.
VALGRIND ?= buf err json seconds uri bundle match hash fs fs_beneath fs_tree manifest manifest_json runlog \
  runlog_entries runlog_fold runlog_groups lease pins journal trail plan rules structure snapshot unit_files \
  transfer restore settle store_mem store_file xml sigv4 credentials options record words durations text \
  last_rules verified io
valgrind: $(call tests,$(VALGRIND))
	@[ $(words $(VALGRIND)) = $(words $^) ] || { echo "valgrind: not each of these is a test: $(VALGRIND)"; exit 1; }; \
	  command -v valgrind >/dev/null || { echo "valgrind: skipped, it is not installed"; exit 1; }; \
	  $(TEST_ENV) TEST_WRAP="valgrind -q --error-exitcode=99 --leak-check=full \
	  --suppressions=spec/valgrind.supp" spec/run_tests $(call only,$^)

## demo: a training run that is killed, resumes, and ends equal to the bit
demo: all
	@CKPT_LUA='$(abspath $(RUNNER))' examples/demo.sh
