/* policy_text: the Lua texts that are built into the sandbox, which can open no file. The array is
 * made by embed.lua. */
#ifndef LUA_POLICY_POLICY_TEXT_H
#define LUA_POLICY_POLICY_TEXT_H

#include <stddef.h>

typedef struct policy_text {
  const char *name; /* chunk name: "=sandbox" */
  const char *text;
  size_t len;
} policy_text;

/* The sandbox comes first, then the parts of the rule library in their order; ended by a NULL
 * name. */
extern const policy_text policy_texts[];

#endif
