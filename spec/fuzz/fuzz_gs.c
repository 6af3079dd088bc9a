/* What Google Cloud Storage answers in JSON, and files of its credentials. The first byte says which. */
#include "targets.h"

#include <string.h>

#include "store/gs/gs.h"

static void listing(const char *text, size_t len) {
  s3_page page = {0};
  err e = {0};
  int rc = gs_read_page(text, len, "a listing", &page, &e);
  must(rc == 0 || (rc < 0 && *e.text));
  for (size_t i = 0; i < page.count; i++) {
    must(page.entries[i].path);
    free(page.entries[i].path);
  }
  must(rc < 0 || !page.next || *page.next);
  free(page.entries);
  free(page.next);
}

/* What goes into headers has no line end in it. */
static void resource(const char *text, size_t len) {
  gs_resource r;
  if (gs_read_resource(text, len, &r, NULL) < 0) return;
  must(!strpbrk(r.generation, "\r\n") && !strpbrk(r.created, "\r\n") && !strpbrk(r.crc32c, "\r\n"));
  must(!strpbrk(r.nonce, "\r\n") && !strpbrk(r.mark, "\r\n"));
}

static void error(const char *text, size_t len) {
  char code[S3_CODE_MAX];
  gs_read_error(text, len, code);
  must(strspn(code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(code));
}

void fuzz_gs(const uint8_t *data, size_t size) {
  err e = {0};
  if (size == 0) return;
  char *text = fuzz_text(data + 1, size - 1);
  switch (data[0] % 4) {
  case 0: listing(text, size - 1); break;
  case 1: resource(text, size - 1); break;
  case 2: error(text, size - 1); break;
  default: must(gs_token_check(text, size - 1, &e) == 0 || *e.text);
  }
  free(text);
}
