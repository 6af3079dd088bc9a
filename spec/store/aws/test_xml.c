#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/aws/xml.h"

/* Notes each call as "PATH=TEXT;" or "PATH!;" for an element with children. */
static int note(void *ctx, const char *path, const char *text) {
  buf_fmt(ctx, "%s%s%s;", path, text ? "=" : "!", text ? text : "");
  return 0;
}

static int walk(const char *text, size_t len, buf *seen, err *e) {
  buf_clear(seen);
  return xml_walk(text, len, "the answer of a test", note, seen, e);
}

static void seen_is(const char *text, const char *want) {
  buf seen;
  buf_init(&seen, 1 << 20);
  assert_int_equal(walk(text, strlen(text), &seen, NULL), 0);
  assert_string_equal(seen.data, want);
  buf_free(&seen);
}

static int refused(const char *text, size_t len, err *e) {
  buf seen;
  buf_init(&seen, 1 << 20);
  *e = (err){0};
  int rc = walk(text, len, &seen, e);
  buf_free(&seen);
  assert_int_equal(rc, e->code);
  if (rc < 0) assert_non_null(strstr(e->text, "the answer of a test"));
  return rc;
}

static void elements_come_with_path_and_text(void **unused) {
  seen_is("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n"
          "  <Name>b</Name>\n  <Prefix></Prefix><Marker/>\n"
          "  <Contents>\n    <Key>a b</Key>\n    <Size>7</Size>\n  </Contents>\n"
          "  <IsTruncated>false</IsTruncated>\n</ListBucketResult>\n",
          "ListBucketResult/Name=b;ListBucketResult/Prefix=;ListBucketResult/Marker=;"
          "ListBucketResult/Contents/Key=a b;ListBucketResult/Contents/Size=7;"
          "ListBucketResult/Contents!;ListBucketResult/IsTruncated=false;ListBucketResult!;");
}

static void text_is_given_as_it_was_meant(void **unused) {
  seen_is("<k> two  spaces\n&amp;&lt;&gt;&quot;&apos;&#65;&#x20AC;<![CDATA[<raw>&]]> </k>",
          "k= two  spaces\n&<>\"'A\xe2\x82\xac<raw>& ;");
  seen_is("<k>a<!-- no -->b<?no thing?>c</k>", "k=abc;");
  seen_is("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><k>\xe4</k>", "k=\xc3\xa4;");
  seen_is("<k>\xc3\xa4</k>", "k=\xc3\xa4;");
}

static int stop_at_b(void *ctx, const char *path, const char *text) {
  ++*(int *)ctx;
  return strcmp(path, "a/b") == 0 ? 77 : 0;
}

static void the_callback_ends_the_walk(void **unused) {
  int calls = 0;
  static const char text[] = "<a><x/><b/><b/><c></broken></a>";
  err e = {0};
  assert_int_equal(xml_walk(text, sizeof text - 1, "x", stop_at_b, &calls, &e), 77);
  assert_int_equal(calls, 2);
  assert_int_equal(e.code, 0);
}

static void a_dtd_is_refused_before_it_grows(void **unused) {
  err e;
  static const char laughs[] =
      "<!DOCTYPE lolz [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">"
      "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;\">]><a>&d;</a>";
  static const char *const bad[] = {
      "<!DOCTYPE a><a/>", laughs,
      "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>",
      "<!DOCTYPE a SYSTEM \"http://127.0.0.1:1/x.dtd\"><a/>"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(refused(bad[i], strlen(bad[i]), &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, "DTD"));
  }
  assert_int_equal(refused("<a>&x;</a>", 10, &e), ERR_FORMAT);
}

static void what_is_no_xml_is_refused_with_its_line(void **unused) {
  err e;
  static const struct {
    const char *text;
    size_t len;
  } bad[] = {{"", 0},
             {"\0\0\0", 3},
             {"no xml", 6},
             {"<a>", 3},
             {"<a></b>", 7},
             {"<a/><b/>", 8},
             {"<a>\0</a>", 8},
             {"<a>&#0;</a>", 11},
             {"<a>\xff\xfe</a>", 9},
             {"<a>\xe4</a>", 8},
             {"<?xml version=\"1.0\" encoding=\"no-such\"?><a/>", 45},
             {"{\"json\": 1}", 11}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(refused(bad[i].text, bad[i].len, &e), ERR_FORMAT);
  assert_int_equal(refused("<a>\n\n<b>\n</a>", 13, &e), ERR_FORMAT);
  assert_non_null(strstr(e.text, "line 4"));
}

static void every_truncation_is_refused(void **unused) {
  static const char text[] = "<?xml version=\"1.0\"?><R><C><K>a&amp;b</K><S>1</S></C><T>x</T></R>";
  err e;
  for (size_t len = 0; len < sizeof text - 1; len++)
    assert_int_equal(refused(text, len, &e), ERR_FORMAT);
  assert_int_equal(refused(text, sizeof text - 1, &e), 0);
}

/* Any byte that is changed leads to an error or to a walk, never to more than that. */
static void damaged_bytes_do_no_harm(void **unused) {
  static const char good[] = "<R><C><K>a&amp;b</K><S>1</S></C><T>x</T></R>";
  char text[sizeof good];
  err e;
  int walked = 0;
  for (size_t i = 0; i < sizeof good - 1; i++) {
    for (int c = 0; c < 256; c++) {
      memcpy(text, good, sizeof good);
      text[i] = (char)c;
      int rc = refused(text, sizeof good - 1, &e);
      assert_true(rc == 0 || rc == ERR_FORMAT);
      walked += rc == 0;
    }
  }
  assert_true(walked > 300); /* letters in texts */
}

static void depth_names_and_texts_are_bounded(void **unused) {
  err e;
  buf text;
  buf_init(&text, 4 << 20);
  for (int depth = 16; depth <= 17; depth++) {
    buf_clear(&text);
    for (int i = 0; i < depth; i++) buf_str(&text, "<d>");
    for (int i = 0; i < depth; i++) buf_str(&text, "</d>");
    assert_int_equal(refused(text.data, text.len, &e), depth == 16 ? 0 : ERR_FORMAT);
  }
  assert_non_null(strstr(e.text, "deep"));

  buf_clear(&text);
  for (int i = 0; i < 100000; i++) buf_str(&text, "<deep>");
  assert_int_equal(refused(text.data, text.len, &e), ERR_FORMAT);

  buf_clear(&text);
  buf_fmt(&text, "<%02000d/>", 0);
  text.data[1] = 'n';
  assert_int_equal(refused(text.data, text.len, &e), ERR_FORMAT);
  assert_non_null(strstr(e.text, "names"));

  buf_clear(&text);
  buf_str(&text, "<a>");
  for (int i = 0; i < (1 << 20) / 64 + 1; i++)
    buf_str(&text, "0123456789012345678901234567890123456789012345678901234567890123");
  buf_str(&text, "</a>");
  assert_int_equal(refused(text.data, text.len, &e), ERR_FORMAT);
  assert_non_null(strstr(e.text, "too long"));
  buf_free(&text);
}

static void what_is_escaped_comes_back(void **unused) {
  buf text, seen;
  buf_init(&text, 4096);
  buf_init(&seen, 4096);
  char raw[256] = {0};
  size_t len = 0;
  for (int c = 1; c < 127; c++)
    if (c >= ' ' || c == '\n' || c == '\r' || c == '\t') raw[len++] = (char)c;
  memcpy(raw + len, "\xc3\xa4]]>", 6);
  buf_str(&text, "<k>");
  xml_escape(raw, &text);
  buf_str(&text, "</k>");
  assert_int_equal(walk(text.data, text.len, &seen, NULL), 0);
  assert_int_equal(strncmp(seen.data, "k=", 2), 0);
  seen.data[seen.len - 1] = 0;
  assert_string_equal(seen.data + 2, raw);
  buf_free(&text);
  buf_free(&seen);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_come_with_path_and_text),
      cmocka_unit_test(text_is_given_as_it_was_meant),
      cmocka_unit_test(the_callback_ends_the_walk),
      cmocka_unit_test(a_dtd_is_refused_before_it_grows),
      cmocka_unit_test(what_is_no_xml_is_refused_with_its_line),
      cmocka_unit_test(every_truncation_is_refused),
      cmocka_unit_test(damaged_bytes_do_no_harm),
      cmocka_unit_test(depth_names_and_texts_are_bounded),
      cmocka_unit_test(what_is_escaped_comes_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
