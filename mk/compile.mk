# How a source becomes an object, and what is linked with it. All objects are made anew when this file
# changes.

# Expanded in recipes only: on a fresh machine pkg-config appears while make is running.
PACKAGES := jansson libxxhash libcrypto libcurl expat
PKG_CFLAGS = $(shell pkg-config --cflags $(PACKAGES) luajit)
LIBS = -Wl,--as-needed $(shell pkg-config --libs $(PACKAGES)) -lpthread
LUA_LIBS = -Wl,--as-needed $(shell pkg-config --libs jansson luajit) -lm

WARN := -Wall -Wextra -Werror -Wformat-security
# Tests find what they share, from any folder.
INCLUDE = -Iengine $(if $(filter spec/%,$<),-Ispec/c -Ispec/c/store)
LANG_FLAGS = -std=c11 -D_GNU_SOURCE $(INCLUDE) $(WARN) $(PKG_CFLAGS)
# Without -fno-sanitize-recover undefined behaviour would be printed, and the test would pass.
SAN := $(if $(SANITIZE),-DCKPT_SANITIZED -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# As Debian builds its own. Sanitizers look at more, and fortify would hide calls from them; it works
# with an optimiser only.
HARDEN := $(if $(SANITIZE),,-fstack-protector-strong $(if $(filter -O1 -O2 -O3,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARD_LINK := $(if $(SANITIZE),,-Wl$(comma)-z$(comma)relro -Wl$(comma)-z$(comma)now)
PROGRAM = $(CC) $(SAN) $(if $(SANITIZE),,-pie) $(HARD_LINK)
MODULE = $(CC) -shared $(SAN) $(HARD_LINK)
# Rules that a test leaves out, each by its name (engine/base/fault.h).
LANG_FLAGS += $(if $(FAULTS),-DCKPT_FAULTS)
COMPILE = $(CC) $(LANG_FLAGS) -fPIC -fvisibility=hidden -MMD -MP $(HARDEN) $(CFLAGS) $(SAN)
# What is installed tells nobody where it was made; a debugger finds sources from the project's root.
HERE := '-ffile-prefix-map=$(CURDIR)=.'
COMPILED_BY := Makefile mk/compile.mk

$(BUILD)/%.o: %.c $(COMPILED_BY) | setup
	@mkdir -p $(@D) && echo "cc $<"
	$(Q)$(COMPILE) $(HERE) -c -o $@ $<

# Changes only when a source came or went: else a removed file would live on in the archive.
$(BUILD)/sources: FORCE
	@mkdir -p $(@D); echo '$(SRC)' | cmp -s - $@ || echo '$(SRC)' >$@

-include $(patsubst %.o,%.d,$(call obj,$(SRC)))
