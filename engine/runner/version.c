/* `version`: which program this is. */
#include "command.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

int verb_version(const options *o) {
  if (o->json) {
    fputs("{\"name\":\"ckpt-lua\",\"version\":", stdout);
    text_json(stdout, ckpt_version());
    fputs("}\n", stdout);
  } else {
    printf("ckpt-lua %s\n", ckpt_version());
  }
  return command_end(EXIT_DONE);
}
