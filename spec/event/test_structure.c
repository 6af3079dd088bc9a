/* Files made by Python's own zipfile and pickle, safetensors and HDF5 heads made by hand, and torn
 * copies of each at many lengths. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/structure.h"
#include "io_fault.h"
#include "tensor_bundle.h"
#include "tmpdir.h"

static char *dir;

static int setup(void **state) {
  /* Thousands of truncations: ext4 waits for the disk at each. */
  dir = access("/dev/shm", W_OK) == 0 ? tmpdir_new_in("/dev/shm") : tmpdir_new();
  return 0;
}

static int teardown(void **state) {
  tmpdir_remove(dir);
  return 0;
}

static structure look(const char *name) {
  structure found;
  err e = {0};
  char why[128];
  int rc = structure_of_file(io_system(), tmpdir_path(dir, name), &found, why, sizeof why, &e);
  if (rc < 0) fail_msg("%s", e.text);
  if (found != STRUCTURE_UNKNOWN) assert_true(*why);
  return found;
}

static structure_proof proof_of(const char *name) {
  structure_proof found;
  err e = {0};
  if (structure_proves(io_system(), tmpdir_path(dir, name), &found, &e) < 0) fail_msg("%s", e.text);
  return found;
}

static bool python(const char *script) {
  char command[8192];
  snprintf(command, sizeof command, "cd '%s' && python3 -c '%s'", dir, script);
  return system(command) == 0;
}

/* Cuts the file at each length near its ends and at many between: none may look whole. */
static void no_beginning_is_sound(const char *name) {
  size_t len;
  char *data = read_file(tmpdir_path(dir, name), &len);
  char copy[256];
  unsigned seed = 7;
  size_t torn = 0, cut = 0;
  assert_non_null(data);
  assert_int_equal(look(name), STRUCTURE_SOUND);
  snprintf(copy, sizeof copy, "cut-%s", name);
  write_bytes(tmpdir_path(dir, copy), data, len);
  for (size_t at = len; at > 0;) {
    seed = seed * 1103515245 + 12345;
    size_t less = at < 100 || len - at < 150 ? 1 : 1 + (seed >> 16) % (len / 120 + 1);
    at -= less < at ? less : at;
    assert_int_equal(truncate(tmpdir_path(dir, copy), (off_t)at), 0);
    structure found = look(copy);
    if (found == STRUCTURE_SOUND) fail_msg("%s cut to %zu of %zu bytes looks whole", name, at, len);
    torn += found == STRUCTURE_TORN;
    cut++;
  }
  if (torn * 10 < cut * 9) fail_msg("%s: only %zu of %zu cuts were found torn", name, torn, cut);
  unlink(tmpdir_path(dir, copy));
  free(data);
}

static void a_zip_is_sound_and_no_beginning_of_it_is(void **state) {
  if (!python("import zipfile\n"
              "z=zipfile.ZipFile(\"a.pt\",\"w\")\n"
              "z.writestr(\"archive/data.pkl\",b\"x\"*3000)\n"
              "[z.writestr(\"archive/data/%d\"%i,bytes(range(256))*20) for i in range(9)]\n"
              "z.close()\n"
              "z=zipfile.ZipFile(\"b.npz\",\"w\",zipfile.ZIP_DEFLATED)\n"
              "z.writestr(\"a.npy\",b\"y\"*9999); z.comment=b\"hello\"; z.close()\n"
              "zipfile.ZipFile(\"empty.npz\",\"w\").close()"))
    skip();
  no_beginning_is_sound("a.pt");
  no_beginning_is_sound("b.npz");
  assert_int_equal(look("empty.npz"), STRUCTURE_SOUND);
  assert_int_equal(proof_of("a.pt"), STRUCTURE_PROVES_WHOLE);
}

static void a_zip_with_64_bit_records_is_sound(void **state) {
  /* 70000 entries do not fit the short record. */
  if (!python("import zipfile\n"
              "z=zipfile.ZipFile(\"many.npz\",\"w\")\n"
              "[z.writestr(str(i),b\"\") for i in range(66000)]\n"
              "z.close()"))
    skip();
  assert_int_equal(look("many.npz"), STRUCTURE_SOUND);
}

static void a_zip_in_a_zip_does_not_pass_for_the_outer_one(void **state) {
  if (!python(
          "import zipfile,io\n"
          "b=io.BytesIO(); z=zipfile.ZipFile(b,\"w\"); z.writestr(\"x\",b\"1\"*500); z.close()\n"
          "z=zipfile.ZipFile(\"outer.keras\",\"w\"); z.writestr(\"inner.zip\",b.getvalue())\n"
          "z.writestr(\"tail\",b\"2\"*500); z.close()"))
    skip();
  size_t len;
  char *data = read_file(tmpdir_path(dir, "outer.keras"), &len);
  for (size_t at = 0; at < len; at++) {
    write_bytes(tmpdir_path(dir, "cut.keras"), data, at);
    assert_int_not_equal(look("cut.keras"), STRUCTURE_SOUND);
  }
  free(data);
}

static void write_safetensors(const char *name, const char *header, size_t data) {
  size_t len = strlen(header);
  char *all = calloc(1, 8 + len + data);
  for (int i = 0; i < 8; i++) all[i] = (char)(len >> (8 * i));
  memcpy(all + 8, header, len);
  memset(all + 8 + len, 'd', data);
  write_bytes(tmpdir_path(dir, name), all, 8 + len + data);
  free(all);
}

static void safetensors_are_as_long_as_they_say(void **state) {
  const char *header = "{\"__metadata__\":{\"format\":\"pt\"},"
                       "\"a\":{\"dtype\":\"U8\",\"shape\":[100],\"data_offsets\":[0,100]},"
                       "\"b\":{\"dtype\":\"U8\",\"shape\":[900],\"data_offsets\":[100,1000]}}   ";
  write_safetensors("m.safetensors", header, 1000);
  no_beginning_is_sound("m.safetensors");
  assert_int_equal(proof_of("m.safetensors"), STRUCTURE_PROVES_LENGTH);
  write_safetensors("long.safetensors", header, 1001);
  assert_int_equal(proof_of("long.safetensors"), STRUCTURE_PROVES_NOTHING);
  assert_int_equal(look("long.safetensors"), STRUCTURE_TORN);
  write_safetensors("odd.safetensors", "[1]", 10);
  assert_int_equal(look("odd.safetensors"), STRUCTURE_TORN);
  write_safetensors("bad.safetensors", "{\"a\":{\"data_offsets\":[5,-1]}}", 10);
  assert_int_equal(look("bad.safetensors"), STRUCTURE_TORN);
  write_bytes(tmpdir_path(dir, "huge.safetensors"), "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
  assert_int_equal(look("huge.safetensors"), STRUCTURE_TORN);
}

static void a_file_with_holes_is_never_sound(void **state) {
  const char *header = "{\"a\":{\"data_offsets\":[0,10000000]}}";
  write_safetensors("holes.safetensors", header, 10);
  /* given its size first, filled later: what kill -9 left of safetensors */
  assert_int_equal(
      truncate(tmpdir_path(dir, "holes.safetensors"), 8 + (off_t)strlen(header) + 10000000), 0);
  struct stat st;
  assert_int_equal(stat(tmpdir_path(dir, "holes.safetensors"), &st), 0);
  if (st.st_blocks * 512 >= st.st_size) skip(); /* a file system without holes */
  assert_int_equal(look("holes.safetensors"), STRUCTURE_UNKNOWN);
  assert_int_equal(proof_of("holes.safetensors"), STRUCTURE_PROVES_NOTHING);
}

static void write_hdf5(const char *name, int version, size_t size, uint64_t end, int flags) {
  unsigned char *b = calloc(1, size + 64);
  memcpy(b, "\x89HDF\r\n\x1a\n", 8);
  b[8] = (unsigned char)version;
  if (version < 2)
    b[13] = b[14] = 8;
  else
    b[9] = b[10] = 8;
  if (version >= 2) b[11] = (unsigned char)flags;
  size_t at = version == 0 ? 40 : version == 1 ? 44 : 28;
  for (int i = 0; i < 8; i++) b[at + (size_t)i] = (unsigned char)(end >> (8 * i));
  write_bytes(tmpdir_path(dir, name), b, size);
  free(b);
}

static void hdf5_is_as_long_as_its_superblock_says(void **state) {
  for (int version = 0; version <= 3; version++) {
    write_hdf5("a.h5", version, 9000, 9000, 0);
    no_beginning_is_sound("a.h5");
    assert_int_equal(proof_of("a.h5"), STRUCTURE_PROVES_CLOSED);
    write_hdf5("b.h5", version, 9000, 8000, 0);
    assert_int_equal(look("b.h5"), STRUCTURE_UNKNOWN);
  }
  write_hdf5("c.h5", 3, 9000, 9000, 1);
  assert_int_equal(look("c.h5"), STRUCTURE_TORN);
  write_hdf5("d.h5", 0, 96, 96, 0); /* made, and nothing written */
  assert_int_equal(look("d.h5"), STRUCTURE_UNKNOWN);
}

static void json_that_breaks_off_is_torn(void **state) {
  write_file(tmpdir_path(dir, "a.json"),
             "{\"a\": [1, 2, {\"b\": \"}]\\\"{\"}], \"loss\": NaN, \"x\": Infinity}");
  no_beginning_is_sound("a.json");
  write_file(tmpdir_path(dir, "b.json"), "{\"a\": 1}\n");
  assert_int_equal(look("b.json"), STRUCTURE_SOUND);
  write_file(tmpdir_path(dir, "lines.json"), "{\"a\": 1}\n{\"a\": 2}\n");
  assert_int_equal(look("lines.json"), STRUCTURE_UNKNOWN);
  write_file(tmpdir_path(dir, "number.json"), "12");
  assert_int_equal(look("number.json"), STRUCTURE_UNKNOWN);
  write_bytes(tmpdir_path(dir, "zeros.json"), "\0\0\0\0\0\0", 6);
  assert_int_equal(look("zeros.json"), STRUCTURE_UNKNOWN);
}

/* As XGBoost writes it (common/json.cc): a key is a length and its bytes; an array of numbers has a
 * type and a count, and no end; another array has a count alone. */
static bool write_ubjson(void) {
  return python(
      "import struct\n"
      "n=lambda x: b\"L\"+struct.pack(\">q\",x)\n"
      "k=lambda t: n(len(t))+t.encode()\n"
      "s=lambda t: b\"S\"+k(t)\n"
      "tree=b\"{\"+k(\"base_weights\")+b\"[$d#\"+n(99)+b\"}]{d\"*99"
      "+k(\"id\")+b\"i\\7\"+k(\"tree_param\")+b\"{\"+k(\"num_nodes\")+s(\"99\")+b\"}}\"\n"
      "model=b\"{\"+k(\"trees\")+b\"[#\"+n(30)+tree*30+k(\"tree_info\")+b\"[$l#\"+n(0)"
      "+k(\"eta\")+b\"d1234\"+k(\"ok\")+b\"TF\"[:1]+k(\"none\")+b\"Z\"+k(\"e\")+b\"{}\"+k(\"v\")"
      "+b\"[l\\0\\0\\0\\2I\\0\\1U\\2D12345678]\"+b\"}\"\n"
      "open(\"m.ubj\",\"wb\").write(b\"{\"+k(\"learner\")+model+k(\"version\")"
      "+b\"[$l#i\\3\"+bytes(12)+b\"}\")\n"
      "open(\"typed.ubj\",\"wb\").write(b\"{$S#i\\2\"+b\"i\\1ai\\2xxi\\1bi\\1y\")\n"
      "open(\"deep.ubj\",\"wb\").write(b\"{i\\1a\"*99+b\"Z\"+b\"}\"*99)\n"
      "open(\"odd.ubj\",\"wb\").write(b\"{i\\1a?}\")\n"
      "open(\"less.ubj\",\"wb\").write(b\"{i\\xffa}\")\n"
      "open(\"zeros.ubj\",\"wb\").write(b\"{\"+bytes(99))\n"
      "open(\"far.ubj\",\"wb\").write(b\"{i\\1a[$D#\"+n(2**62)+b\"}\")\n"
      "open(\"binary.ubj\",\"wb\").write(b\"binf\"+bytes(99))");
}

/* The loop that serves signals waits for the answer: 250 MiB of nothing but nulls took it seconds. */
static void a_ubjson_object_of_too_many_values_is_not_walked_to_its_end(void **state) {
  enum { MANY = 17 << 20 };
  (void)state;
  char *data = malloc(MANY);
  assert_non_null(data);
  memset(data, 'Z', MANY);
  memcpy(data, "{i\1a[", 5);
  memcpy(data + MANY - 2, "]}", 2);
  write_bytes(tmpdir_path(dir, "many.ubj"), data, MANY);
  free(data);
  assert_int_equal(look("many.ubj"), STRUCTURE_UNKNOWN);
}

static void a_ubjson_object_is_closed_by_its_last_byte(void **state) {
  if (!write_ubjson()) skip();
  no_beginning_is_sound("m.ubj");
  no_beginning_is_sound("typed.ubj");
  assert_int_equal(proof_of("m.ubj"), STRUCTURE_PROVES_WHOLE);
  size_t len;
  char *data = read_file(tmpdir_path(dir, "m.ubj"), &len);
  data[len] = '}';
  write_bytes(tmpdir_path(dir, "behind.ubj"), data, len + 1);
  free(data);
  assert_int_equal(look("behind.ubj"), STRUCTURE_UNKNOWN);
  assert_int_equal(look("deep.ubj"), STRUCTURE_UNKNOWN);
  assert_int_equal(look("odd.ubj"), STRUCTURE_UNKNOWN);
  assert_int_equal(look("less.ubj"), STRUCTURE_UNKNOWN);
  assert_int_equal(look("zeros.ubj"), STRUCTURE_UNKNOWN);
  assert_int_equal(look("binary.ubj"), STRUCTURE_UNKNOWN);
  assert_int_equal(look("far.ubj"), STRUCTURE_TORN);
}

/* What its Booster.save_model leaves; the program of its command line writes no last line. */
static void a_model_of_lightgbm_ends_with_the_line_of_python(void **state) {
  const char *trees = "tree\nversion=v4\n\nend of trees\n\nend of parameters\n";
  char all[256];
  snprintf(all, sizeof all, "%s\npandas_categorical:[[\"a\", \"b\"]]\n", trees);
  write_file(tmpdir_path(dir, "lgb.txt"), all);
  assert_int_equal(look("lgb.txt"), STRUCTURE_SOUND);
  assert_int_equal(proof_of("lgb.txt"), STRUCTURE_PROVES_WHOLE);
  for (size_t at = strlen(all) - 1; at > 0; at--) {
    assert_int_equal(truncate(tmpdir_path(dir, "lgb.txt"), (off_t)at), 0);
    assert_int_equal(proof_of("lgb.txt"), STRUCTURE_PROVES_NOTHING);
  }
}

static void a_pickle_ends_with_stop(void **state) {
  if (!python("import pickle\n"
              "class A: pass\n"
              "import collections\n"
              "o={\"a\":[1,2.5,None,True,b\"---\"*500,\"text\"*99,(1,),(1,2),(1,2,3),{1,2},"
              "frozenset([1]),10**30,-5,300,70000,collections.OrderedDict(x=1),bytearray(b\"q\")],"
              "\"b\":bytes(70000)}\n"
              "[pickle.dump(o,open(\"p%d.pkl\"%v,\"wb\"),v) for v in (2,3,4,5)]\n"
              "f=open(\"two.pkl\",\"wb\"); pickle.dump(o,f); pickle.dump(o,f); f.close()"))
    skip();
  no_beginning_is_sound("p2.pkl");
  no_beginning_is_sound("p3.pkl");
  size_t len;
  char *data;
  /* A frame of protocol 4 hides nothing from the walk. */
  no_beginning_is_sound("p4.pkl");
  no_beginning_is_sound("p5.pkl");
  assert_int_equal(look("two.pkl"),
                   STRUCTURE_UNKNOWN); /* the end of the second is not looked for */
  data = read_file(tmpdir_path(dir, "p4.pkl"), &len);
  write_bytes(tmpdir_path(dir, "raw.bin2"), data, len);
  assert_int_equal(look("raw.bin2"), STRUCTURE_UNKNOWN);
  free(data);
}

static void write_real_bundle(const char *stem) {
  static const char zeros[BUNDLE_SHARD];
  char name[256];
  snprintf(name, sizeof name, "%s.data-00000-of-00001", stem);
  write_bytes(tmpdir_path(dir, name), zeros, sizeof zeros);
  snprintf(name, sizeof name, "%s.index", stem);
  write_bytes(tmpdir_path(dir, name), bundle_index, sizeof bundle_index);
}

static structure unit(const char *path, match_kind kind, char *why) {
  structure found;
  err e = {0};
  int rc = structure_of_unit(io_system(), dir, path, kind, rules_builtin(), &found, why, 128, &e);
  if (rc < 0) fail_msg("%s", e.text);
  return found;
}

static structure_proof group_proof(const char *path) {
  structure_proof found;
  err e = {0};
  if (structure_proves_group(io_system(), dir, path, rules_builtin(), &found, &e) < 0)
    fail_msg("%s", e.text);
  return found;
}

static void a_bundle_of_tensorflow_is_whole_with_the_shards_of_its_index(void **state) {
  char why[128];
  write_real_bundle("ckpt-1");
  assert_int_equal(look("ckpt-1.index"), STRUCTURE_SOUND);
  assert_int_equal(unit("ckpt-1", MATCH_GROUP, why), STRUCTURE_SOUND);
  assert_int_equal(group_proof("ckpt-1"), STRUCTURE_PROVES_WHOLE);
  const char *index = tmpdir_path(dir, "ckpt-1.index");
  for (off_t len = sizeof bundle_index; len-- > 0;) {
    assert_int_equal(truncate(index, len), 0);
    if (look("ckpt-1.index") != STRUCTURE_UNKNOWN) fail_msg("cut to %lld bytes", (long long)len);
  }
  write_real_bundle("ckpt-1");
  const char *shard = tmpdir_path(dir, "ckpt-1.data-00000-of-00001");
  assert_int_equal(truncate(shard, BUNDLE_SHARD - 1), 0);
  assert_int_equal(unit("ckpt-1", MATCH_GROUP, why), STRUCTURE_TORN);
  assert_non_null(strstr(why, "shorter"));
  assert_int_equal(unlink(shard), 0);
  assert_int_equal(unit("ckpt-1", MATCH_GROUP, why), STRUCTURE_TORN);
  assert_non_null(strstr(why, "missing"));
}

/* A save under a name that is there is killed when the new shard is in its place: TensorFlow finds that
 * its sums do not agree. */
static void a_bundle_whose_index_is_older_than_a_shard_is_not_known(void **state) {
  char why[128];
  const struct timespec then[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
  write_real_bundle("ckpt-8");
  assert_int_equal(utimensat(AT_FDCWD, tmpdir_path(dir, "ckpt-8.index"), then, 0), 0);
  assert_int_equal(unit("ckpt-8", MATCH_GROUP, why), STRUCTURE_UNKNOWN);
  assert_int_equal(utimensat(AT_FDCWD, tmpdir_path(dir, "ckpt-8.data-00000-of-00001"), then, 0), 0);
  assert_int_equal(unit("ckpt-8", MATCH_GROUP, why), STRUCTURE_SOUND);
}

/* A table may say so as often as it likes: 64 MiB of handles to one block of a MiB are hours. */
static void a_bundle_that_names_a_block_twice_is_not_read(void **state) {
  uint8_t file[BUNDLE_ROOM];
  static const char shard[BUNDLE_SHARD];
  write_bytes(tmpdir_path(dir, "one.data-00000-of-00001"), shard, sizeof shard);
  for (int handles = 1; handles <= BUNDLE_HANDLES; handles++) {
    size_t len = bundle_around(file, bundle_index, BUNDLE_BLOCK, handles);
    write_bytes(tmpdir_path(dir, "one.index"), file, len);
    assert_int_equal(look("one.index"), handles == 1 ? STRUCTURE_SOUND : STRUCTURE_UNKNOWN);
  }
}

/* The sums find it: TensorFlow does not read such an index. */
static void a_bundle_with_another_byte_in_its_index_is_not_sound(void **state) {
  unsigned char b[sizeof bundle_index];
  size_t torn = 0;
  write_real_bundle("ckpt-2");
  for (size_t i = 0; i < sizeof b; i++) {
    memcpy(b, bundle_index, sizeof b);
    b[i] ^= 0x10;
    write_bytes(tmpdir_path(dir, "ckpt-2.index"), b, sizeof b);
    const structure found = look("ckpt-2.index");
    const bool padding = i >= sizeof b - 48 && i < sizeof b - 8; /* of the footer: no sum has it */
    if (found == STRUCTURE_SOUND && !padding) fail_msg("byte %zu may be another one", i);
    torn += found == STRUCTURE_TORN;
  }
  assert_true(torn > 200);
}

static void an_index_of_something_else_is_not_torn(void **state) {
  static const char bytes[] =
      "\0\0\1\10 big-endian numbers, and no table of TensorFlow at all .......";
  write_bytes(tmpdir_path(dir, "table.index"), bytes, sizeof bytes);
  assert_int_equal(look("table.index"), STRUCTURE_UNKNOWN);
}

static void a_bundle_with_a_file_that_nothing_vouches_for_is_not_known(void **state) {
  char why[128];
  write_real_bundle("ckpt-3");
  write_file(tmpdir_path(dir, "ckpt-3.meta"),
             "a graph"); /* TensorFlow 1 writes it behind the index */
  assert_int_equal(unit("ckpt-3", MATCH_GROUP, why), STRUCTURE_UNKNOWN);
  assert_int_equal(group_proof("ckpt-3"), STRUCTURE_PROVES_NOTHING);
  write_real_bundle("ckpt-4");
  write_file(tmpdir_path(dir, "ckpt-4.data-00001-of-00002"), "a shard of another save");
  assert_int_equal(unit("ckpt-4", MATCH_GROUP, why), STRUCTURE_UNKNOWN);
  write_file(tmpdir_path(dir, "ckpt-5.data-00000-of-00001"), "no index yet");
  assert_int_equal(unit("ckpt-5", MATCH_GROUP, why), STRUCTURE_UNKNOWN);
}

static void a_bundle_is_not_known_with_a_shard_of_holes_or_a_link(void **state) {
  char why[128];
  write_real_bundle("ckpt-6");
  assert_int_equal(truncate(tmpdir_path(dir, "ckpt-6.data-00000-of-00001"), 1 << 20), 0);
  assert_int_equal(unit("ckpt-6", MATCH_GROUP, why), STRUCTURE_UNKNOWN);
  write_real_bundle("ckpt-7");
  const char *shard = tmpdir_path(dir, "ckpt-7.data-00000-of-00001");
  assert_int_equal(unlink(shard), 0);
  assert_int_equal(symlink("/etc/passwd", shard), 0);
  assert_int_equal(unit("ckpt-7", MATCH_GROUP, why), STRUCTURE_UNKNOWN);
}

static void an_empty_checkpoint_file_is_torn(void **state) {
  write_file(tmpdir_path(dir, "e.pt"), "");
  write_file(tmpdir_path(dir, "e.json"), "");
  write_file(tmpdir_path(dir, "e.txt"), "");
  assert_int_equal(look("e.pt"), STRUCTURE_TORN);
  assert_int_equal(look("e.json"), STRUCTURE_TORN);
  assert_int_equal(look("e.txt"), STRUCTURE_UNKNOWN);
}

static void any_bytes_are_survived(void **state) {
  static const char *const names[] = {"r.pt", "r.safetensors", "r.h5", "r.json", "r.pkl", "r.ubj"};
  static const char *const heads[] = {"PK\3\4", "PK\5\6", "\x89HDF\r\n\x1a\n", "{", "\x80\4", "{"};
  unsigned char b[300];
  unsigned seed = 1;
  for (int n = 0; n < 1500; n++) {
    size_t len = (size_t)n % sizeof b, head = strlen(heads[n % 6]);
    for (size_t i = 0; i < len; i++) {
      seed = seed * 1103515245 + 12345;
      b[i] = (unsigned char)(seed >> (n % 2 ? 16 : 22));
    }
    if (len >= head) memcpy(b, heads[n % 6], head);
    if (len >= 22 && n % 3 == 0) memcpy(b + len - 22, "PK\5\6", 4);
    write_bytes(tmpdir_path(dir, names[n % 6]), b, len);
    look(names[n % 6]);
  }
}

static void a_unit_is_as_good_as_its_worst_file(void **state) {
  char why[128];
  make_dir(tmpdir_path(dir, "checkpoint-1"));
  assert_int_equal(unit("checkpoint-1", MATCH_DIR, why), STRUCTURE_UNKNOWN); /* empty */
  write_file(tmpdir_path(dir, "checkpoint-1/a.json"), "{}");
  assert_int_equal(unit("checkpoint-1", MATCH_DIR, why), STRUCTURE_SOUND);
  write_file(tmpdir_path(dir, "checkpoint-1/.tmpabcdef"), "");
  write_file(tmpdir_path(dir, "checkpoint-1/torn.json.tmp"), "{");
  assert_int_equal(unit("checkpoint-1", MATCH_DIR, why), STRUCTURE_SOUND); /* no part of it */
  write_file(tmpdir_path(dir, "checkpoint-1/notes"), "x");
  assert_int_equal(unit("checkpoint-1", MATCH_DIR, why), STRUCTURE_UNKNOWN);
  make_dir(tmpdir_path(dir, "checkpoint-1/sub"));
  write_file(tmpdir_path(dir, "checkpoint-1/sub/b.json"), "{");
  assert_int_equal(unit("checkpoint-1", MATCH_DIR, why), STRUCTURE_TORN);
  assert_non_null(strstr(why, "b.json"));
}

static void a_unit_without_its_marker_is_torn(void **state) {
  char why[128];
  make_dir(tmpdir_path(dir, "checkpoint-2"));
  write_file(tmpdir_path(dir, "checkpoint-2/training_args.bin"), "x");
  assert_int_equal(unit("checkpoint-2", MATCH_DIR, why), STRUCTURE_TORN);
  assert_non_null(strstr(why, "trainer_state.json"));
  write_file(tmpdir_path(dir, "checkpoint-2/trainer_state.json"), "{}");
  assert_int_equal(unit("checkpoint-2", MATCH_DIR, why), STRUCTURE_UNKNOWN);
}

static void a_group_has_the_files_of_its_stem_alone(void **state) {
  char why[128];
  make_dir(tmpdir_path(dir, "tf"));
  write_file(tmpdir_path(dir, "tf/ckpt-1.json"), "{}");
  write_file(tmpdir_path(dir, "tf/ckpt-1.index.json"), "{}");
  write_file(tmpdir_path(dir, "tf/ckpt-10.json"), "{");
  assert_int_equal(unit("tf/ckpt-1", MATCH_GROUP, why), STRUCTURE_SOUND);
  assert_int_equal(unit("tf/ckpt-10", MATCH_GROUP, why), STRUCTURE_TORN);
}

static void links_are_not_followed(void **state) {
  char why[128];
  make_dir(tmpdir_path(dir, "checkpoint-3"));
  write_file(tmpdir_path(dir, "checkpoint-3/a.json"), "{}");
  assert_int_equal(symlink("/etc/passwd", tmpdir_path(dir, "checkpoint-3/x.json")), 0);
  assert_int_equal(unit("checkpoint-3", MATCH_DIR, why), STRUCTURE_SOUND);
}

static void what_cannot_be_read_is_an_error(void **state) {
  structure found;
  err e = {0};
  const char *gone = tmpdir_path(dir, "gone.pt");
  assert_int_equal(structure_of_file(io_system(), gone, &found, NULL, 0, &e), ERR_NOENT);
  write_file(tmpdir_path(dir, "x.json"), "{}");
  io_fault *f = io_fault_new(io_system());
  for (int n = 1; n < 20; n++) {
    io_fault_once(f, CALL_ANY, n, 5);
    int rc = structure_of_file(io_fault_io(f), tmpdir_path(dir, "x.json"), &found, NULL, 0, &e);
    if (rc < 0) assert_int_equal(found, STRUCTURE_UNKNOWN);
    if (io_fault_failed(f, CALL_ANY) == 0) break;
  }
  io_fault_free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_zip_is_sound_and_no_beginning_of_it_is),
      cmocka_unit_test(a_zip_with_64_bit_records_is_sound),
      cmocka_unit_test(a_zip_in_a_zip_does_not_pass_for_the_outer_one),
      cmocka_unit_test(safetensors_are_as_long_as_they_say),
      cmocka_unit_test(a_file_with_holes_is_never_sound),
      cmocka_unit_test(hdf5_is_as_long_as_its_superblock_says),
      cmocka_unit_test(json_that_breaks_off_is_torn),
      cmocka_unit_test(a_ubjson_object_is_closed_by_its_last_byte),
      cmocka_unit_test(a_ubjson_object_of_too_many_values_is_not_walked_to_its_end),
      cmocka_unit_test(a_model_of_lightgbm_ends_with_the_line_of_python),
      cmocka_unit_test(a_pickle_ends_with_stop),
      cmocka_unit_test(a_bundle_of_tensorflow_is_whole_with_the_shards_of_its_index),
      cmocka_unit_test(a_bundle_whose_index_is_older_than_a_shard_is_not_known),
      cmocka_unit_test(a_bundle_that_names_a_block_twice_is_not_read),
      cmocka_unit_test(an_index_of_something_else_is_not_torn),
      cmocka_unit_test(a_bundle_with_another_byte_in_its_index_is_not_sound),
      cmocka_unit_test(a_bundle_with_a_file_that_nothing_vouches_for_is_not_known),
      cmocka_unit_test(a_bundle_is_not_known_with_a_shard_of_holes_or_a_link),
      cmocka_unit_test(an_empty_checkpoint_file_is_torn),
      cmocka_unit_test(any_bytes_are_survived),
      cmocka_unit_test(a_unit_is_as_good_as_its_worst_file),
      cmocka_unit_test(a_unit_without_its_marker_is_torn),
      cmocka_unit_test(a_group_has_the_files_of_its_stem_alone),
      cmocka_unit_test(links_are_not_followed),
      cmocka_unit_test(what_cannot_be_read_is_an_error),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
