#include "frameworks.h"

#include <string.h>

#include "prims/match.h"

/* Apart from what follows: "??" and a dash is a trigraph in C11. */
#define Q4 "????"
/* One character of Python's tempfile names. */
#define T1 "[a-z0-9_]"
#define T4 T1 T1 T1 T1

/* ".*" is never excluded: .metadata and its kind are data. */
static const framework rows[] = {
    {.name = "Hugging Face Trainer",
     .units = {"checkpoint-{step}/"},
     .temporary = {".tmp??????" /* safetensors */, "tmp-checkpoint-*" /* 4.36 and 4.37 */},
     /* Rank 0 writes it, and waits for nobody. */
     .markers = {{"trainer_state.json", "training_args.bin", false, false}},
     .wish = {"trainer_state.json", "best_model_checkpoint"}},
    {.name = "accelerate", .units = {"checkpoint_{step}/"}},
    {.name = "torch.distributed.checkpoint",
     .units = {"step-{step}/", "step_{step}/"},
     .temporary = {"*.tmp"},
     .markers = {{".metadata", "__*_*.distcp", true, true}}},
    {.name = "DeepSpeed",
     .units = {"global_step{step}/"},
     .pointers = {{"latest", POINTER_TEXT, NULL, false}}},
    /* The pointers of these two are by their description alone. */
    {.name = "Megatron",
     .units = {"iter_{step}/"},
     .pointers = {{"latest_checkpointed_iteration.txt", POINTER_STEP, NULL, false}}},
    {.name = "T5X", .pointers = {{"latest_checkpoint.txt", POINTER_TEXT, NULL, false}}},
    {.name = "Ray Tune and Ray Train",
     .units = {"checkpoint_[0-9]{*}/"}, /* the time of day */
     /* The same name is written again and again; a later session has a later time in it. */
     .above = {"tuner.pkl", "experiment_state-*.json", "basic-variant-state-*.json",
               "search_gen_state-*.json", "searcher-state-*.pkl"},
     .together = {"tuner.pkl", "experiment_state-*.json"},
     .temporary = {".validate_storage_marker", "." Q4 Q4 "-" Q4 "-" Q4 "-" Q4 "-" Q4 Q4 Q4 "-*"},
     .pointers = {{"result.json", POINTER_LOG, NULL, false},
                  {"progress.csv", POINTER_LOG, NULL, false},
                  {"params.json", POINTER_LOG, NULL, false},
                  {"params.pkl", POINTER_LOG, NULL, false},
                  {"experiment_state-*.json", POINTER_LOG, NULL, true},
                  {"tuner.pkl", POINTER_LOG, NULL, false}}},
    {.name = "Ray Train", /* v2; its units are called as those above */
     .pointers = {{"checkpoint_manager_snapshot.json", POINTER_LIST, "checkpoint_dir_name", true}}},
    {.name = "composer", .units = {"ep*-ba{step}-rank*.pt"}, .temporary = {"*.symlink"}},
    {.name = "Lightning",
     .units = {"*step={step}-*.ckpt/", "*step={step}.ckpt/", "*.ckpt/" /* sharded */,
               "*step={step}-*.ckpt", "*step={step}.ckpt", "*.ckpt"}},
    {.name = "torchsnapshot", .markers = {{".snapshot_metadata", NULL, true, true}}},
    {.name = "Orbax",
     .units = {"{step}/"},
     .proven = {"{step}/"}, /* any directory may be a number */
     .temporary = {"*.orbax-checkpoint-tmp*", "*.__lock" /* tensorstore */},
     /* _CHECKPOINT_METADATA is written first, and again at the end. */
     .markers = {{"commit_success.txt", NULL, false, true},
                 {"_CHECKPOINT_METADATA", NULL, true, true}}},
    {.name = "Flax", .units = {"checkpoint_{step}"}, .temporary = {"checkpoint_tmp"}},
    {.name = "Keras",
     .units = {"*.keras", "*.h5"},
     .markers = {{"training_metadata.json", NULL, true, false}},
     .pointers = {{"training_metadata.json", POINTER_STATE, "latest.weights.h5", false}}},
    {.name = "AdaptDL", .temporary = {"_checkpoint"}},
    {.name = "ignite", .temporary = {"tmp" T4 T4}},
    {.name = "mmengine and detectron2",
     .pointers = {{"last_checkpoint", POINTER_TEXT, NULL, false}}},
    {.name = "XGBoost", .units = {"*.ubj"}},
    {.name = "CatBoost", .units = {"*.cbm", "*.cbsnapshot"}, .temporary = {"*.bak", "tmp/"}},
    {.name = "joblib",
     .units = {"*.joblib", "*.joblib.gz", "*.joblib.z", "*.joblib.bz2", "*.joblib.xz",
               "*.joblib.lzma", "*.joblib.lz4"}},
    {.name = "Stable-Baselines3",
     .units = {"*_{step}_steps.zip", "*_replay_buffer_{step}_steps.pkl",
               "*_vecnormalize_{step}_steps.pkl", "*.zip"},
     .proven = {"*.zip"},
     .begins = {{0, "PK\3\4"}, {30, "data"}}}, /* its first member */
    {.name = "LightGBM",
     .units = {"*.txt", "*.snapshot_iter_{step}"},
     .proven = {"*.txt", "*.snapshot_iter_{step}"},
     .begins = {{0, "tree\nversion="}}},
    {.name = "PaddlePaddle", .units = {"*.pdparams"}},
    /* What many loops write by hand. */
    {.name = "a training loop",
     .units = {"epoch-{step}/", "epoch_{step}/", "ckpt-{step}/", "ckpt_{step}/", "*.pt", "*.pth",
               "*.safetensors", "*.npz", "*.msgpack", "pytorch_model*.bin"}},
    {.name = "a file system", /* what was removed while it was open, or put into a bin */
     .temporary = {".nfs[0-9a-f][0-9a-f][0-9a-f][0-9a-f]*", ".fuse_hidden*", ".Trash-[0-9]*"}},
    /* Behind all single files: "ckpt-1.pt" is one. */
    {.name = "TensorFlow",
     .units = {"ckpt-{step}.*"},
     .temporary = {"*_temp/", "*.tempstate*", "checkpoint.tmp*"},
     .pointers = {{"checkpoint", POINTER_PROTO, NULL, false}}},
    {.name = NULL},
};

const framework *frameworks(void) {
  return rows;
}

static bool begins(const framework *f, const char *head, size_t len) {
  for (const framework_begin *b = f->begins; b->text; b++) {
    size_t n = strlen(b->text);
    if (b->at + n > len || memcmp(head + b->at, b->text, n) != 0) return false;
  }
  return f->begins[0].text != NULL;
}

bool framework_begins(const char *path, const void *head, size_t len) {
  match_unit m;
  for (const framework *f = rows; f->name; f++)
    for (size_t i = 0; f->proven[i]; i++)
      if (match_unit_path(f->proven[i], path, false, &m) && begins(f, head, len)) return true;
  return false;
}
