/* policy_bounds: bounds one Lua state of policies: a heap with a cap, a number of instructions and
 * a CPU time for each request.
 *
 * All of it works by refusing: nothing here interrupts a thread. The state's JIT has to be off:
 * compiled loops call no hook. A hook is called between Lua's own instructions only, so each C
 * function that Lua can call has to be quick by itself (policy_guard.h). */
#ifndef LUA_POLICY_POLICY_BOUNDS_H
#define LUA_POLICY_POLICY_BOUNDS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy_cover.h"

enum {
  BOUNDS_STEP = 1000, /* instructions from one look at the clock to the next */
  BOUNDS_INSTRUCTIONS = 10 * 1000 * 1000,
  BOUNDS_CPU_MS = 250,
  BOUNDS_HEAP = 8 << 20
};

typedef enum bounds_over { BOUNDS_KEPT, BOUNDS_OVER_COUNT, BOUNDS_OVER_CPU } bounds_over;

/* A time of this thread's CPU clock, in ns. It is taken, not the time of day: on a busy machine a good
 * policy must not fail because others ran. That clock takes a system call, the wall's takes none; and as
 * a thread gets no more CPU time than passes on the wall, it is not reached before `wall`. */
typedef struct bounds_end {
  int64_t cpu, wall;
} bounds_end;

typedef struct policy_bounds {
  size_t used; /* bytes that the state holds now */
  size_t cap;  /* 0: none */
  uint64_t instructions;
  bounds_end end;
  bounds_over over;
  policy_cover *cover; /* borrowed: is told each line; NULL: nobody asks for it */
  lua_Alloc memory;    /* LuaJIT's own: it takes a third less time than the C library's */
  void *arena;
} policy_bounds;

/* Makes a state whose memory is counted in `b`, which has to outlive it. There is no cap and no
 * hook yet: LuaJIT dies when its first allocations fail. NULL: out of memory. */
lua_State *bounds_state(policy_bounds *b);
void bounds_close(policy_bounds *b, lua_State *L);

/* Bounds the request from here on; `cap` is for all that it holds, in bytes. Call it inside of a
 * protected call: it raises nothing itself, but the code after it may. */
void bounds_arm(policy_bounds *b, lua_State *L, size_t cap);
/* Ends the cap and the hook: the host's own calls outside of a protected call must not fail. */
void bounds_disarm(policy_bounds *b, lua_State *L);

/* Pushes "mine.lua:7: ", the line of a policy that is running, whatever it has called; policies are
 * the chunks with names that end in .lua. An empty text if its frame was given up (a tail call). */
void bounds_push_where(lua_State *L);

/* Raises the hook's error if the CPU time is used up: before a call of C that may take long. */
void bounds_look(lua_State *L);

/* Returns the time that is reached when this thread has used `ns` more. */
bounds_end bounds_in(int64_t ns);
bool bounds_reached(bounds_end *end);

/* For the host's own loops over tables that a policy made: true once the CPU time is used up. */
bool bounds_late(policy_bounds *b);

#endif
