/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin in C, written for plugin ABI 1.0. */
#include "abi_1_0.h"

static const triax_option options[] = {
    {TRIAX_OPTION_INT, 0, "depth", "2", NULL, "how deep", 1, 8},
    {TRIAX_OPTION_STRING, 0, "wait", "spin", "spin|yield", "how to wait", 1, 0},
};

static void* create(const triax_create_args* args, triax_error* error) {
  (void)args;
  (void)error;
  return NULL;
}

static void destroy(void* object) {
  (void)object;
}

const triax_plugin* triax_plugin_entry_v1(void) {
  static const triax_plugin entry = {TRIAX_ABI_MAGIC,
                                    sizeof(triax_plugin),
                                    TRIAX_ABI_MAJOR,
                                    TRIAX_ABI_MINOR,
                                    "c;sanitizer=" SANITIZER ";c;release=0",
                                    "scheduler",
                                    2,
                                    0,
                                    "c-plugin",
                                    "1.0.0",
                                    "a plugin in C",
                                    options,
                                    2,
                                    sizeof(triax_option),
                                    create,
                                    destroy};
  return &entry;
}
