# The targets of make fuzz: `replay` feeds them with their corpus, libFuzzer's main() with anything.

# What asks an S3 server gets its answers from the input, and no program is started.
FUZZ_WRAP := $(patsubst %,-Wl$(comma)--wrap=%,http_open http_close http_start http_wait http_done program_start)
FUZZ_OBJ := $(call obj,$(filter-out %/replay.c %/fuzz.c,$(FUZZ_SRC)) $(filter %/tar.c,$(ARCHIVE_SRC)))
$(BUILD)/spec/fuzz/replay $(BUILD)/spec/fuzz/fuzz: $(BUILD)/spec/fuzz/%: $(BUILD)/spec/fuzz/%.o $(FUZZ_OBJ) \
    $(BUILD)/runner.a $(BUILD)/policy.a $(BUILD)/engine.a mk/fuzz.mk
	@echo "link $@"
	$(Q)$(CC) $(if $(filter %/fuzz,$@),$(subst fuzzer-no-link,fuzzer,$(SAN)),$(SAN)) $(FUZZ_WRAP) \
	  -o $@ $(filter %.o %.a,$^) $(LIBS) $(LUA_LIBS) -larchive

.PHONY: fuzz fuzz-tree
## fuzz: T=name TIME=600: libFuzzer on one parser for so many seconds; without T on each of them
FUZZ_BUILD := build/fuzz
fuzz: | setup
	@$(MAKE) --no-print-directory SETUP=no CC=clang SANITIZE=fuzzer-no-link,address,undefined \
	  CFLAGS='-O1 -g' BUILD=$(FUZZ_BUILD) $(FUZZ_BUILD)/spec/fuzz/fuzz
	@spec/fuzz/run $(FUZZ_BUILD)/spec/fuzz/fuzz $(FUZZ_BUILD)/work $(or $(TIME),600) $(T)

## fuzz-tree: SEEDS=1000: random moves on a watched tree under sanitizers; adds up in docs/testing.md
FUZZ_TREE := $(patsubst $(BUILD)/%,build/asan/%,$(call tests,detect_fuzz))
fuzz-tree: | setup
	@$(FIXED_MAP) $(MAKE) --no-print-directory SETUP=no BUILD=build/asan SANITIZE=address,undefined \
	  CFLAGS='-O1 -g' $(FUZZ_TREE)
	@ASAN_OPTIONS=handle_segv=2:exitcode=99 UBSAN_OPTIONS=exitcode=99 $(FIXED_MAP) \
	  nice spec/fuzz/tree.sh $(FUZZ_TREE) $(or $(SEEDS),1000) docs/testing.md
