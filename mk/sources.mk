# What is made of which sources. A folder decides, and where one folder has several things in it, the
# name of the file does: to move a file into another room, nothing is changed here.

ENGINE := $(sort $(shell find engine -name '*.c'))
RUNNER_SRC := $(filter engine/runner/%,$(ENGINE))
LUA_SRC := $(filter engine/lua/%,$(ENGINE))

# libarchive ends its process when memory runs out: it lives in a helper, never in the library.
ARCHIVE_SRC := $(filter %/tar.c %/archive_host.c,$(ENGINE))
# What a helper gives up of its rights; the library's process keeps them.
LOCKDOWN_SRC := $(filter %/lockdown.c,$(ENGINE))
LIB_SRC := $(filter-out $(RUNNER_SRC) $(LUA_SRC) $(ARCHIVE_SRC) $(LOCKDOWN_SRC),$(ENGINE))

# The sandbox: what its two forms share (a program, a module), and each one's own part. The rest of
# Lua is for trusted scripts.
POLICY_OWN := $(filter %/policy_host.c %/policy_entry.c,$(LUA_SRC))
POLICY_SRC := $(filter-out $(POLICY_OWN),$(filter engine/lua/policy%,$(LUA_SRC))) $(LOCKDOWN_SRC)
SCRIPT_SRC := $(filter %/script.c,$(LUA_SRC))
TRUSTED_SRC := $(filter-out $(POLICY_OWN) $(POLICY_SRC) $(SCRIPT_SRC),$(LUA_SRC))
# Of the library, what the sandbox and the archive helper need.
POLICY_BASE := $(filter $(patsubst %,engine/base/%.c,buf err json number packed secret shown),$(LIB_SRC))
ARCHIVE_BASE := $(filter $(patsubst %,engine/base/%.c,bundle err),$(LIB_SRC)) $(LOCKDOWN_SRC)

# A test program is one file test_*.c below spec/, in whichever folder; what they share is in spec/c, or
# beside those of one room.
TEST_SRC := $(sort $(shell find spec -name 'test_*.c'))
TEST_HELP := $(filter-out $(TEST_SRC),$(wildcard spec/c/*.c spec/c/store/*.c spec/event/*.c))
FUZZ_SRC := $(wildcard spec/fuzz/*.c)
SIM_SRC := $(wildcard spec/sim/*.c)

# Slurm's plugin, where Slurm's headers are (Debian: libslurm-dev).
SPANK_SRC := $(if $(wildcard /usr/include/slurm/spank.h),contrib/slurm/spank_ckpt.c)

SRC := $(ENGINE) $(TEST_HELP) $(TEST_SRC) $(FUZZ_SRC) $(SIM_SRC) $(SPANK_SRC)
LUA := $(wildcard lua policies examples spec)

obj = $(1:%.c=$(BUILD)/%.o)
