# The tests that take minutes, and are no part of `make test`.

## test-hostile: policies that loop, grow, reach out and lie, in both tiers; archives, logs,
##   manifests, listings, results, names and environments that somebody else chose
HOSTILE := $(call tests,hook_probe policy_guard policy_serve policy_host)
test-hostile: $(HOSTILE) all
	@$(TEST_ENV) TEST_TIMEOUT=$${TEST_TIMEOUT:-1200} spec/run_tests $(HOSTILE) \
	  $(sort $(wildcard spec/hostile/*_spec.* spec/hostile/long/*_spec.*) spec/hostile/inputs.sh)

## test-world: what others do to a run: containers, users, full places, hostile stores, foreign data
test-world: all servers
	@$(TEST_ENV) TEST_TIMEOUT=$${TEST_TIMEOUT:-1200} spec/run_tests \
	  $(call only,$(sort $(wildcard spec/world/*_spec.* spec/world/long/*_spec.*)))

## bench-log: DELAY_MS=40 COMMITS='1 80 300 10000': requests, rounds, time and memory to list logs of that length
.PHONY: bench-log
bench-log: bench-put all servers $(call tests,log_made)
	@$(TEST_ENV) spec/commit/log/bench_log.sh

# Those that are shown as they go differ in what they play, with what, and what is made before.
PLAYED := $(patsubst %,test-%,failn power kill crash crash-s3 crash-kms zombie ranks slurm nfs grace net servers frameworks)
$(PLAYED):
	@$(TEST_ENV) $(WITH) spec/run_tests --shown $(PLAY)

## bench-put: GIB=2 FILES=10000 RUNS=5: what a transfer to a bucket costs, beside obstore and pyarrow;
##   figures in build/bench/put.txt
bench-put: all servers
	@$(TEST_ENV) spec/bench/put.sh

## bench-policy: what a decision and retention over 10,000 checkpoints cost, here and in the policies' process,
##   beside a bare exchange; figures in build/bench/policy.txt
bench-policy: all $(call tests,policy_cost)
	@mkdir -p $(BUILD)/bench && rm -f $(BUILD)/bench/policy.txt
	@$(TEST_ENV) BENCH=$(BUILD)/bench/policy.txt $(call tests,policy_cost) && cat $(BUILD)/bench/policy.txt

## bench-replay: COMMITS='2000 5000 10000' KEPT='100 1000 2000': seconds of the processor that policy replay takes of such
##   logs; figures in build/bench/replay.txt
bench-replay: all $(call tests,log_made)
	@mkdir -p $(BUILD)/bench && $(TEST_ENV) spec/bench/replay.sh >$(BUILD)/bench/replay.txt; status=$$?; cat $(BUILD)/bench/replay.txt; exit $$status

## bench-ranks: RANKS='16 64' MINUTE=60 WORLDS='16 64 1000 10000': what ranks ask of a bucket at a start, a checkpoint,
##   while they wait, and at the end; and so many, simulated, for a checkpoint; figures in build/bench/ranks.txt
bench-ranks: all servers $(call tests,job_ranks_many)
	@$(TEST_ENV) spec/ranks/cost.sh

## test-failn: FAILN_STRIDE=n: every call of every operation fails, one after the other (or each n-th)
test-failn: private PLAY = spec/failn/failn.sh
test-failn: $(call tests,failn)

## test-power: ROUNDS=12: power losses of a machine in User-Mode Linux, on ext4 and xfs
test-power: private PLAY = spec/power/power.sh
test-power: private WITH = SETUP=$(SETUP)
test-power: all

## test-nfs: three machines in User-Mode Linux, one of which serves NFS 4.2 to the others
test-nfs: private PLAY = spec/nfs/nfs.sh
test-nfs: private WITH = SETUP=$(SETUP)
test-nfs: all

## test-kill: SIGKILL at every system call of save, commit and restore
test-kill: private PLAY = spec/crash/kill.sh
test-kill: all

## test-crash: SIZE=1GiB N=50: one run, killed N times, compared byte for byte
test-crash: private PLAY = spec/crash/crash.sh
test-crash: all

## test-crash-s3: SIZE=1GiB N=50: the same with a bucket as its target; SERVER=minio-kms and others
test-crash-s3: private PLAY = spec/crash/crash.sh
test-crash-s3: private WITH = TARGET=s3 SETUP=$(SETUP)
test-crash-s3: all servers

## test-zombie: writers that are pushed aside and go on, frozen ranks, clones, two launches of one job
test-zombie: private PLAY = spec/zombie/zombie.sh spec/zombie/ranks.sh spec/zombie/s3.sh
test-zombie: all servers

## test-ranks: RANKS=8 CHECKPOINTS=20: ranks that are killed at random, then fewer with a bucket; 16 that come back
##   as 12, with one directory and with own ones
test-ranks: private PLAY = spec/ranks/ranks.py spec/ranks/many.py spec/ranks/s3.sh
test-ranks: all servers

## test-slurm: a real Slurm cluster of 4 nodes: how it ends jobs and starts them again, nodes that are lost or
##   frozen, two copies of one job, ranks that are another number; installs Slurm
test-slurm: private PLAY = spec/slurm/slurm_spec.sh spec/slurm/signals.sh spec/slurm/nodes.sh \
  spec/slurm/ranks.sh spec/slurm/worlds.sh spec/slurm/shared.sh spec/slurm/plugin.sh spec/slurm/comment.sh \
  spec/slurm/launchers.sh
test-slurm: all slurm
# Its headers may have come just now, and with them the plugin.
slurm: all
	@$(if $(filter no,$(SETUP)),:,spec/servers/slurm.sh install || :)
	@$(MAKE) --no-print-directory SETUP=no all

## test-grace: a grace that ends in the middle of an upload
test-grace: private PLAY = spec/store/grace.sh
test-grace: all servers

## test-net: COUNT=200: saves, restores and removals over a network that toxiproxy spoils
test-net: private PLAY = spec/net/net.sh
test-net: private WITH = COUNT='$(COUNT)'
test-net: all servers

## test-servers: other tools read and write the bucket (boto3, pyarrow, s3fs, s5cmd, rclone, Ray), and
##   the life of a target with a directory, versitygw, MinIO (plain, versions, object lock, KMS), moto and
##   S3Proxy; installs what that takes, about 1.6 GB
test-servers: private PLAY = spec/servers/interop.sh spec/servers/cycle.sh spec/servers/minio_uploads.sh
test-servers: private WITH = SETUP=$(SETUP)
test-servers: all servers

## test-crash-kms: N=60: the crash loop on MinIO with SSE-KMS, without retention and with it
test-crash-kms: private PLAY = spec/crash/kms.sh spec/crash/kms_keep.sh
test-crash-kms: private WITH = SETUP=$(SETUP)
test-crash-kms: all servers

## judge: SEED=n COUNT=1000 STORES=dir,versitygw,minio: real processes by lot, killed, stopped and lied to, and
##   a judge that knows only the promises; a byte flipped everywhere
judge: private PLAY = spec/judge/judge.sh spec/judge/flip.sh
judge: all servers
	@$(TEST_ENV) SEED='$(SEED)' COUNT='$(COUNT)' STORES='$(STORES)' spec/run_tests --shown $(PLAY)

## judge-faults: ONLY=name: programs that leave out one rule each, which the judge has to notice
judge-faults: all servers
	@$(MAKE) --no-print-directory SETUP=no FAULTS=yes BUILD=$(BUILD)/faults RUNNER=$(BUILD)/faults/ckpt-lua all
	@$(TEST_ENV) CKPT_SOUND='$(abspath $(RUNNER))' CKPT_LUA='$(abspath $(BUILD)/faults/ckpt-lua)' ONLY='$(ONLY)' SEED='$(SEED)' \
	  spec/run_tests --shown spec/judge/faults.sh

## test-long: all tests that take minutes, one after the other; SIZE, N, COUNT and the like as above
LONG := hostile world failn kill sim zombie ranks slurm nfs power net grace crash crash-s3 crash-kms servers
test-long: all servers
	@bad=; for t in $(LONG); do echo "== test-$$t"; $(MAKE) --no-print-directory test-$$t || bad="$$bad test-$$t"; done; \
	  [ -z "$$bad" ] || { echo "failed, or played nothing:$$bad"; exit 1; }

## contract: each of the 300 behaviours of the object library, and the test that shows it
contract: all servers
	@$(TEST_ENV) luajit spec/contract/list.lua

## contract-mutants: SEED=n COUNT=60: breaks so many of them, one at a time; a test must fail each time
contract-mutants: all servers
	@$(TEST_ENV) luajit spec/contract/mutants.lua $(if $(SEED),--seed $(SEED)) \
	  $(if $(filter all,$(COUNT)),--all,$(if $(COUNT),--count $(COUNT)))

.PHONY: slurm judge judge-faults $(PLAYED) $(LONG:%=test-%) test-long contract contract-mutants bench-put bench-policy bench-replay bench-ranks

## test-frameworks: GROUP=name KILLS=10 LOSSES=2: Hugging Face, Lightning, DCP, DeepSpeed, Orbax, Keras, Ray and others,
##   killed and resumed; rows in build/frameworks/table.txt; installs them, about 9 GB
test-frameworks: private PLAY = spec/frameworks/frameworks.sh
test-frameworks: private WITH = SETUP=$(SETUP) GROUP='$(GROUP)' KILLS='$(KILLS)' LOSSES='$(LOSSES)'
test-frameworks: all
