# The simulator of the commit protocol. It links the log with small constants: its logs are short.

SCALED := $(BUILD)/sim/scaled
SCALED_SRC := $(foreach source,$(LIB_SRC),$(if $(filter runlog%,$(notdir $(source))),$(source)))
SCALED_OBJ := $(patsubst %.c,$(SCALED)/%.o,$(notdir $(SCALED_SRC)))
SCALED_HEADERS := $(wildcard $(addsuffix runlog*.h,$(sort $(dir $(SCALED_SRC)))))
# An edited copy of a source does not lie beside the headers of its room.
COMPILE_COPY = $(COMPILE) $(patsubst %/,-iquote %,$(sort $(dir $(LIB_SRC))))

$(SCALED)/made: spec/sim/faults.lua $(SCALED_SRC) $(SCALED_HEADERS) | setup
	@rm -rf $(@D) && mkdir -p $(@D) && luajit $< --scaled $(@D) && touch $@

# The lists of what an object needs name the copies: without a rule, make gives up where it asks for one
# while they are made anew.
$(SCALED_OBJ:.o=.c) $(addprefix $(SCALED)/,$(notdir $(SCALED_HEADERS))): $(SCALED)/made ;

$(SCALED_OBJ): $(SCALED)/made $(COMPILED_BY) mk/sim.mk
	@echo "cc $(@:.o=.c)"
	$(Q)$(COMPILE_COPY) -c -o $@ $(@:.o=.c)

-include $(SCALED_OBJ:.o=.d)

$(BUILD)/sim/sim: $(call obj,$(SIM_SRC)) $(SCALED_OBJ) $(BUILD)/engine.a
	@echo "link $@"
	$(Q)$(CC) $(SAN) -o $@ $(filter %.o %.a,$^) $(LIBS)

.PHONY: test-sim
## test-sim: SEED=n: the commit protocol on a seeded simulator, and each fault put back into it
test-sim: $(BUILD)/sim/sim
	@CKPT_BUILD='$(abspath $(BUILD))' SIM_COMPILE='$(COMPILE_COPY) -w' SIM_LINK='$(CC) $(SAN)' SIM_LIBS='$(LIBS)' \
	  SEED='$(SEED)' COUNT='$(COUNT)' $(if $(SEED),,spec/run_tests --shown) spec/sim/run.sh
