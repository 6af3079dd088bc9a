# The checks: one line for each step; each can be made alone.

STEPS := layers words paths gcc hardened clang tidy format lua types shell
.PHONY: check $(STEPS:%=check-%)

## check: layer order, names of files in comments, warnings of gcc and clang, hardened binaries, clang-tidy, format, luacheck, types of Lua, shellcheck
check: $(STEPS:%=check-%)

check-layers: | setup
	@luajit spec/check_layers.lua engine && luajit spec/check_layers.lua lua && echo "layers: in order"

check-words: | setup
	@! grep -rnwE 'TODO|FIXME|XXX' $(wildcard engine contrib $(LUA)) && echo "words: nothing left to do"

check-paths: | setup
	@luajit spec/check_paths.lua && echo "paths: what comments and pages name is there"

check-gcc: $(call obj,$(SRC))
	@echo "gcc: $(words $(SRC)) files without a warning"

check-hardened: all
	@spec/check_hardened.sh '$(SANITIZE)' $(RUNNER) $(BUILD)/libckpt.so $(LIBEXEC) $(filter %.so,$(SPANK))

# The object stands for the headers that its source includes: what did not change is not read again.
$(BUILD)/%.clang: %.c $(BUILD)/%.o
	@clang -fsyntax-only $(LANG_FLAGS) $< && touch $@

$(BUILD)/%.tidy: %.c $(BUILD)/%.o .clang-tidy
	@spec/check_tidy.sh $< $(LANG_FLAGS) && touch $@

check-clang: $(SRC:%.c=$(BUILD)/%.clang)
	@echo "clang: $(words $^) files without a warning"

check-tidy: $(SRC:%.c=$(BUILD)/%.tidy)
	@echo "clang-tidy: $(words $^) files without a finding"

check-format: | setup
	@find engine spec contrib -path spec/fuzz -prune -o -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
	@echo "clang-format: nothing to change"

check-lua: | setup
	@luacheck -q --no-color $(LUA) | sed 's/^Total:/luacheck:/'; exit $${PIPESTATUS[0]}

# Where the checker cannot be had, nothing is checked, and that is said: no package of Debian has it. With
# NEED_TYPES=yes that is an error.
check-types: | setup
	@$(if $(filter no,$(SETUP)),:,spec/types/emmylua.sh install || :); \
	  if server=$$(spec/types/emmylua.sh path); then python3 spec/types/check.py "$$server"; \
	  elif [ '$(NEED_TYPES)' = yes ]; then echo "types: nothing was checked, and NEED_TYPES=yes wants it" >&2; exit 1; \
	  else echo "types: skipped"; fi

check-shell: | setup
	@find . -name .git -prune -o -path ./build -prune -o -type f -exec \
	  awk 'FNR == 1 && (FILENAME ~ /\.sh$$/ || /^#!.*[\/ ](ba|da)?sh( |$$)/) { print FILENAME } { nextfile }' {} + | \
	  xargs shellcheck && echo "shellcheck: no finding"
