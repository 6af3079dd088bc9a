# The library, the programs that help it, and the runner.

LIBEXEC := $(patsubst %,$(BUILD)/%,libexec/ckpt-policy libexec/ckpt-policy.so libexec/ckpt-script \
  libexec/ckpt-archive lua/ckpt/core.so)

# A plugin of slurmstepd, which is root's: nothing of the library is in it.
SPANK := $(if $(SPANK_SRC),$(patsubst %,$(BUILD)/contrib/slurm/%,spank_ckpt.so ckpt-task))

.PHONY: all
## all: the library (build/libckpt.a, .so), its helpers, the runner (./ckpt-lua), and Slurm's plugin where its headers are
all: $(BUILD)/libckpt.a $(BUILD)/libckpt.so $(LIBEXEC) $(RUNNER) $(SPANK)

$(BUILD)/engine.a $(BUILD)/libckpt.a $(BUILD)/libckpt.so $(BUILD)/policy.a $(BUILD)/runner.a $(LIBEXEC) $(RUNNER) $(SPANK): mk/build.mk

# The library with all its names, for what is made here. Outside only libckpt.a and .so are known.
$(BUILD)/engine.a: $(call obj,$(LIB_SRC)) $(BUILD)/sources
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

# One object, in which what is hidden in the shared library is local: a program that has a function of
# its own called log_open() is linked with it.
$(BUILD)/libckpt.a: $(call obj,$(LIB_SRC)) $(BUILD)/sources
	@echo "link $@" && rm -f $@
	$(Q)ld -r -o $(@:.a=.o) $(filter %.o,$^) && objcopy --localize-hidden $(@:.a=.o)
	$(Q)ar rcs $@ $(@:.a=.o)

# It stays loaded: libcurl and jansson have their memory from it.
$(BUILD)/libckpt.so: $(call obj,$(LIB_SRC)) $(BUILD)/sources
	@echo "link $@"
	$(Q)$(MODULE) -Wl,-soname,libckpt.so.0 -Wl,-z,nodelete $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
	  -o $@ $(filter %.o,$^) $(LIBS)
	@ln -sf libckpt.so $@.0

$(RUNNER): $(call obj,$(RUNNER_SRC)) $(BUILD)/engine.a
	@echo "link $@"
	$(Q)$(PROGRAM) -o $@ $(filter %.o %.a,$^) $(LIBS)

# The runner's parts, for their tests: all but its main().
$(BUILD)/runner.a: $(call obj,$(filter-out %/main.c,$(RUNNER_SRC))) $(BUILD)/sources
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

# The rule library is built in: where policies run no file can be opened.
TEXTS := lua/policy/sandbox.lua lua/policy/library.lua
$(BUILD)/policy_texts.c: engine/lua/policy/embed.lua $(TEXTS) $(wildcard lua/policy/library/*.lua) | setup
	@mkdir -p $(@D) && echo "embed $@"
	$(Q)luajit $< $@ $(TEXTS)

$(BUILD)/policy_texts.o: $(BUILD)/policy_texts.c $(COMPILED_BY)
	$(Q)$(COMPILE) $(HERE) -c -o $@ $<

$(BUILD)/policy.a: $(call obj,$(POLICY_SRC) $(POLICY_BASE)) $(BUILD)/policy_texts.o $(BUILD)/sources
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(BUILD)/libexec/ckpt-policy: $(call obj,$(filter %/policy_host.c,$(POLICY_OWN))) $(BUILD)/policy.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(PROGRAM) -o $@ $(filter %.o %.a,$^) $(LUA_LIBS)

$(BUILD)/libexec/ckpt-policy.so: $(call obj,$(filter %/policy_entry.c,$(POLICY_OWN))) $(BUILD)/policy.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(MODULE) $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(filter %.o %.a,$^) $(LUA_LIBS)

$(BUILD)/libexec/ckpt-archive: $(call obj,$(ARCHIVE_SRC) $(ARCHIVE_BASE))
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(PROGRAM) -o $@ $(filter %.o,$^) -larchive

# For trusted Lua: the program behind `ckpt-lua exec`, and `require "ckpt.core"` of any LuaJIT, which
# brings its own lua_*. It stays loaded: finalizers that a state runs while it is closed make objects
# whose own finalizers, which are in it, run after it would have gone.
$(BUILD)/libexec/ckpt-script: $(call obj,$(SCRIPT_SRC) $(TRUSTED_SRC)) $(BUILD)/engine.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(PROGRAM) -Wl,-E -o $@ $(filter %.o %.a,$^) $(LIBS) $(LUA_LIBS)

$(BUILD)/lua/ckpt/core.so: $(call obj,$(TRUSTED_SRC)) $(BUILD)/engine.a
	@mkdir -p $(@D) && echo "link $@"
	$(Q)$(MODULE) -Wl,-z,nodelete -o $@ $(filter %.o %.a,$^) $(LIBS)

# Slurm looks its functions up by their names.
$(call obj,$(SPANK_SRC)): private CFLAGS += -fvisibility=default
$(BUILD)/contrib/slurm/spank_ckpt.so: $(call obj,$(SPANK_SRC))
	@echo "link $@"
	$(Q)$(MODULE) -o $@ $(filter %.o,$^)

$(BUILD)/contrib/slurm/ckpt-task: contrib/slurm/ckpt-task | setup
	@mkdir -p $(@D) && cp $< $@
