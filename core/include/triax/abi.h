/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin ABI: the one C function that a plugin exports, and what it returns.
 *
 * Threads: entry function, create and destroy: the rank's main thread; ranks that are threads of one process may create
 * at once. Ownership: the descriptor and all it points to are static storage of the plugin, which is never unloaded.
 * Blocking: create only stores its arguments: no device, no network. Errors: create returns NULL and fills triax_error.
 *
 * Version rules. This header is append-only. A new field goes to the end of its struct and raises the minor version;
 * the core reads a field only if struct_size says that the plugin has it. Anything else raises the major version and
 * gives the entry function a new name. The list below has every minor version.
 *   1.0  first release
 *   1.1  triax_create_args.loader
 */
#ifndef TRIAX_ABI_H
#define TRIAX_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIAX_ABI_MAGIC 0x58525431u              /* "1TRX" in memory */
#define TRIAX_ABI_MAJOR 1                        /* raised if older plugins no longer load */
#define TRIAX_ABI_MINOR 1                        /* raised with each new field */
#define TRIAX_ENTRY_NAME "triax_plugin_entry_v1" /* the function that a plugin exports */

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

/* Where create reports a failure: text is a buffer of the core, of capacity bytes; the text ends with a NUL. */
typedef struct triax_error {
  char* text;
  size_t capacity;
} triax_error;

/* What create gets. The pointers are C++ objects of libtriax_core, valid as long as the plugin's object, except loader,
 * which is valid until create returns. */
typedef struct triax_create_args {
  uint32_t struct_size;
  uint32_t reserved;
  const void* options; /* const triax::Options*: every option of the table, parsed and checked */
  void* log;           /* triax::Log* */
  const void* layout;  /* const triax::Layout* */
  int32_t rank;        /* in the world */
  int32_t threads;     /* CPU threads this rank may use */
  void* loader;        /* triax::PluginLoader*, for plugins that wrap another; since 1.1 */
} triax_create_args;

/* The descriptor of a plugin. */
typedef struct triax_plugin {
  uint32_t magic, struct_size, abi_major, abi_minor;
  const char* toolchain;      /* TRIAX_TOOLCHAIN of the build, see toolchain.h */
  const char* kind;           /* "communicator" "scheduler" "kernels" "model" "optimizer" "planner" */
  uint32_t interface_version; /* of that kind's C++ class */
  uint32_t reserved;
  const char *name, *version, *description;
  const triax_option* options;
  size_t option_count, option_size;                        /* size = stride, so that options may grow too */
  void* (*create)(const triax_create_args*, triax_error*); /* noexcept; the interface pointer as void*, NULL = failed */
  void (*destroy)(void*);                                  /* noexcept */
  /* new fields go here, minor + 1 */
} triax_plugin;

/* Exports the entry function. */
#if defined(__GNUC__)
#define TRIAX_ENTRY __attribute__((visibility("default")))
#else
#define TRIAX_ENTRY
#endif

/* The entry function: returns the descriptor of the plugin. */
TRIAX_ENTRY const triax_plugin* triax_plugin_entry_v1(void);
typedef const triax_plugin* (*triax_plugin_entry_fn)(void); /* type of the entry function */

#ifdef __cplusplus
} /* extern "C" */

static_assert(offsetof(triax_plugin, destroy) == 96 && sizeof(triax_plugin) == 104, "1.0 is frozen");
static_assert(offsetof(triax_option, max) == 48 && sizeof(triax_option) == 56, "1.0 is frozen");
static_assert(offsetof(triax_create_args, threads) == 36, "1.0 is frozen");
static_assert(offsetof(triax_create_args, loader) == 40 && sizeof(triax_create_args) == 48, "1.1 is frozen");
#endif

#endif
