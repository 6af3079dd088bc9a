# Installed below PREFIX. All is found from where the runner or the library stands, so the whole may be
# moved; DESTDIR is put in front, for who makes a package.

PREFIX ?= /usr/local
DESTDIR ?=
VERSION = $(shell sed -n 's/^\#define CKPT_VERSION_TEXT "\(.*\)"/\1/p' $(filter %/ckpt.c,$(ENGINE)))

# file:place, for each that is installed.
into = $(foreach file,$2,$(file):$1/$(notdir $(file)))
# The same for all files in $2, which keep their path; without $3 in front.
tree_into = $(foreach file,$(sort $(shell find $2 -type f -regex "[a-zA-Z0-9_./-]*")),$(file):$1/$(file:$3%=%))
INSTALLED = $(call into,bin,$(RUNNER)) $(call into,include,engine/ckpt.h) $(call into,lib,$(BUILD)/libckpt.a) \
  $(BUILD)/libckpt.so:lib/libckpt.so.$(VERSION) $(call into,lib/pkgconfig,$(BUILD)/ckpt.pc) \
  $(call into,libexec/ckpt-lua,$(filter $(BUILD)/libexec/%,$(LIBEXEC))) \
  $(call into,lib/lua/5.1/ckpt,$(BUILD)/lua/ckpt/core.so) \
  $(call tree_into,share/lua/5.1,lua/ckpt,lua/) \
  $(call tree_into,share/ckpt-lua,policies) \
  $(call tree_into,share/doc/ckpt-lua,README.md CHANGELOG.md LICENSE docs examples)
# What a plugin does is for the administrator to want.
ifeq ($(SPANK_PLUGIN),yes)
INSTALLED += $(call into,lib/ckpt-lua/slurm,$(if $(SPANK),$(SPANK),$(error SPANK_PLUGIN=yes: there is no slurm/spank.h (Debian: libslurm-dev))))
endif
LINKS = lib/libckpt.so.0 lib/libckpt.so
FOLDERS := lib/ckpt-lua/slurm lib/ckpt-lua libexec/ckpt-lua lib/lua/5.1/ckpt share/lua/5.1/ckpt share/ckpt-lua share/doc/ckpt-lua

$(BUILD)/ckpt.pc: mk/ckpt.pc.in mk/install.mk mk/compile.mk $(filter %/ckpt.c,$(ENGINE)) | setup
	@mkdir -p $(@D) && sed 's|@VERSION@|$(VERSION)|; s|@LIBS@|$(shell pkg-config --libs $(PACKAGES)) -lpthread|' $< >$@

.PHONY: install uninstall
## install: PREFIX=/usr/local DESTDIR= SPANK_PLUGIN=: the runner, the library for C and for any LuaJIT, policies;
##   SPANK_PLUGIN=yes: Slurm's plugin, too
install: all $(BUILD)/ckpt.pc
	$(Q)for each in $(INSTALLED); do \
	  [ -x "$${each%%:*}" ] && mode=755 || mode=644; \
	  install -D -m $$mode "$${each%%:*}" '$(DESTDIR)$(PREFIX)'/"$${each#*:}" || exit 1; done
	$(Q)for link in $(LINKS); do ln -sf libckpt.so.$(VERSION) '$(DESTDIR)$(PREFIX)'/$$link || exit 1; done

## uninstall: PREFIX=/usr/local DESTDIR= SPANK_PLUGIN=: removes what install puts there, and nothing else
uninstall:
	$(Q)[ -d '$(DESTDIR)$(PREFIX)' ] || exit 0; cd '$(DESTDIR)$(PREFIX)' && for each in $(INSTALLED) $(LINKS); do rm -f "$${each#*:}" || exit 1; done
	$(Q)[ -d '$(DESTDIR)$(PREFIX)' ] || exit 0; cd '$(DESTDIR)$(PREFIX)' && for folder in $(FOLDERS); do \
	  [ ! -d $$folder ] || find $$folder -depth -type d -empty -delete || exit 1; done
