/* SPDX-License-Identifier: Apache-2.0 */
/* FROZEN: triax/abi.h of plugin ABI 1.0, for plugins of the tests. Do not change its declarations: every plugin that
 * was compiled with it must load. */
#ifndef TRIAX_ABI_1_0_H
#define TRIAX_ABI_1_0_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIAX_ABI_MAGIC 0x58525431u /* "1TRX" in memory */
#define TRIAX_ABI_MAJOR 1
#define TRIAX_ABI_MINOR 0
#define TRIAX_ENTRY_NAME "triax_plugin_entry_v1"

/* Type of an option's value. A list type holds values of its element type. */
typedef enum triax_option_type {
  TRIAX_OPTION_BOOL = 1,
  TRIAX_OPTION_INT = 2,
  TRIAX_OPTION_FLOAT = 3,
  TRIAX_OPTION_STRING = 4,
  TRIAX_OPTION_PATH = 5,    /* relative to the TOML file that names it, or to the working folder on a command line */
  TRIAX_OPTION_LIST = 0x100 /* added to an element type */
} triax_option_type;

/* One TOML key of a plugin's table. */
typedef struct triax_option {
  uint32_t type; /* triax_option_type, plus TRIAX_OPTION_LIST for a list */
  uint32_t reserved;
  const char* name;          /* the key; with its unit: timeout_s */
  const char* default_value; /* TOML text: "600", "\"auto\"" is written auto, "[1, 2]"; NULL = the key is required */
  const char* choices;       /* "auto|ring", or NULL for any text */
  const char* doc;           /* one line */
  double min, max;           /* INT and FLOAT (each element of a list); min > max = no limits */
} triax_option;

/* Where create reports a failure: text is a buffer of the core's, of capacity bytes, to be ended by a NUL. */
typedef struct triax_error {
  char* text;
  size_t capacity;
} triax_error;

/* What create gets. The pointers are C++ objects of libtriax_core, valid as long as the plugin's object. */
typedef struct triax_create_args {
  uint32_t struct_size;
  uint32_t reserved;
  const void* options; /* const triax::Options*: every option of the table, parsed and checked */
  void* log;           /* triax::Log* */
  const void* layout;  /* const triax::Layout* */
  int32_t rank;        /* in the world */
  int32_t threads;     /* CPU threads this rank may use */
} triax_create_args;

typedef struct triax_plugin {
  uint32_t magic, struct_size, abi_major, abi_minor;
  const char* toolchain;      /* TRIAX_TOOLCHAIN of the build, see toolchain.h */
  const char* kind;           /* "communicator" "scheduler" "kernels" "model" "optimizer" */
  uint32_t interface_version; /* of that kind's C++ class */
  uint32_t reserved;
  const char *name, *version, *description;
  const triax_option* options;
  size_t option_count, option_size;                        /* size = stride, so that options may grow too */
  void* (*create)(const triax_create_args*, triax_error*); /* noexcept; the interface pointer as void*, NULL = failed */
  void (*destroy)(void*);                                  /* noexcept */
  /* new fields go here, minor + 1 */
} triax_plugin;

#if defined(__GNUC__)
#define TRIAX_ENTRY __attribute__((visibility("default")))
#else
#define TRIAX_ENTRY
#endif

TRIAX_ENTRY const triax_plugin* triax_plugin_entry_v1(void);
typedef const triax_plugin* (*triax_plugin_entry_fn)(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
